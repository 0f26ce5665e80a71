//! Reads documents and prints what the crate makes of them, for `tests/python/test_config_corpus.py`.
//!
//! Standard input: one JSON object per line, `{"text": "..."}` or `{"json": "..."}`.
//! Standard output: one per line, `{"message": hex of the encoded message, "json": its JSON form}` or
//! `{"error": "..."}`.

use std::io::{self, BufRead, Write};

use galatea_config::{RawModelConfig, parse_json, parse_text, to_json};
use prost::Message;
use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&serde_json::from_str(&line?)?))?;
    }
    out.flush()
}

fn answer(document: &Value) -> Value {
    let outcome = match (document["text"].as_str(), document["json"].as_str()) {
        (Some(text), _) => parse_text(text).map_err(|e| e.to_string()),
        (_, Some(json)) => parse_json(json).map_err(|e| e.to_string()),
        _ => Err("neither text nor json".to_owned()),
    };
    match outcome {
        Ok(config) => json!({ "message": hex(&config), "json": to_json(&config) }),
        Err(error) => json!({ "error": error }),
    }
}

fn hex(config: &RawModelConfig) -> String {
    config.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect()
}

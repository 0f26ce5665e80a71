//! No configuration override makes the JSON reader panic, and what it accepts survives the way back.
#![no_main]

use galatea_config::{parse_json, to_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &str| {
    if let Ok(raw) = parse_json(json) {
        parse_json(&to_json(&raw)).expect("our own JSON");
    }
});

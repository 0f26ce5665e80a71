//! What a worker asks of the server besides inference.

use std::{collections::BTreeMap, sync::Arc, thread};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use galatea_types::{Buffer, Error, Result};
use serde_json::Value;

use crate::{
    link::Link,
    metrics::Metrics,
    packing::Message,
    wire::{Malformed, Outgoing, flag, kind, number_of},
};

/// Of the names of files, as in load requests over HTTP.
const FILE_PREFIX: &str = "file:";

pub(crate) fn begin(link: &Arc<Link>, message: &Message<'_>) -> Result<(), Malformed> {
    let call = message.packet.header.id;
    let ask = read(message)?;
    let operation = ask.get("op").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(result) = Metrics::answer(link, &operation, &ask) {
        reply(link, call, result);
        return Ok(());
    }
    match operation.as_str() {
        "is_cancelled" => {
            let key = ask.get("key").and_then(Value::as_u64).unwrap_or_default();
            reply(link, call, Ok(link.streams.is_cancelled(key).into()));
        }
        "is_decoupled" => {
            let models = &link.server.models;
            let answer = version(&ask).and_then(|v| models.is_decoupled(name(&ask), v));
            reply(link, call, answer.map(Value::from));
        }
        "load_model" | "unload_model" | "is_model_ready" => control(link, call, operation, ask),
        _ => reply(link, call, Err(Error::unsupported(format!("unknown operation '{operation}'")))),
    }
    Ok(())
}

pub(crate) fn read(message: &Message<'_>) -> Result<Value, Malformed> {
    serde_json::from_slice(message.packet.payload.meta).map_err(|_| Malformed("it is not JSON"))
}

/// Loading takes as long as it takes, and asking a model whether it is ready may, too: not on this thread,
/// which the model that is loaded may need.
fn control(link: &Arc<Link>, call: u64, operation: String, ask: Value) {
    let on_thread = link.clone();
    let work = move || reply(&on_thread, call, carry_out(&on_thread, &operation, &ask));
    let started = thread::Builder::new().name("python-control".to_owned()).spawn(work);
    if let Err(error) = started {
        let error = Error::unavailable(format!("no thread to control models: {error}"));
        reply(link, call, Err(error));
    }
}

fn carry_out(link: &Link, operation: &str, ask: &Value) -> Result<Value> {
    let control = &link.server.control;
    match operation {
        "load_model" => {
            let config = ask.get("config").and_then(Value::as_str).filter(|c| !c.is_empty());
            let config = config.map(str::to_owned);
            control.load_model(name(ask), config, files(ask)?).map(|()| Value::Null)
        }
        "unload_model" => {
            let unload_dependents = ask.get("unload_dependents").and_then(Value::as_bool);
            let unload_dependents = unload_dependents.unwrap_or(false);
            control.unload_model(name(ask), unload_dependents).map(|()| Value::Null)
        }
        _ => Ok(control.is_model_ready(name(ask), version(ask)?).into()),
    }
}

fn name(ask: &Value) -> &str {
    ask.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn version(ask: &Value) -> Result<Option<i64>> {
    match ask.get("version") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_i64().filter(|&n| n >= 0)),
        Some(Value::String(text)) if text.is_empty() || text == "-1" => Ok(None),
        Some(Value::String(text)) => text.parse().map(Some).map_err(|_| {
            Error::invalid_arg(format!(
                "failed to get model version from specified version string '{text}' (details: stol), version \
                 should be an integral value > 0"
            ))
        }),
        Some(_) => Err(Error::invalid_arg("a model version must be text")),
    }
}

fn files(ask: &Value) -> Result<BTreeMap<String, Buffer>> {
    let files = ask.get("files").and_then(Value::as_object).into_iter().flatten();
    let decode = |(path, content): (&String, &Value)| {
        let content = STANDARD.decode(content.as_str().unwrap_or_default());
        let content = content
            .map_err(|e| Error::invalid_arg(format!("content of file '{path}' is damaged: {e}")))?;
        let path = path
            .strip_prefix(FILE_PREFIX)
            .ok_or_else(|| Error::invalid_arg(format!("unrecognized load parameter '{path}'.")))?;
        Ok((path.to_owned(), content.into()))
    };
    files.map(decode).collect()
}

fn reply(link: &Link, call: u64, result: Result<Value>) {
    let mut message = Outgoing::new(kind::REPLY, call);
    match result {
        Ok(value) => message.meta = value.to_string().into_bytes(),
        Err(error) => {
            message.flags = flag::ERROR;
            message.count = number_of(error.code()).into();
            message.meta = error.message().as_bytes().to_vec();
        }
    }
    if link.death().is_none() && link.send_side(&message).is_err() {
        log::error!("the answer to a question of {} was lost", link.identity);
    }
}

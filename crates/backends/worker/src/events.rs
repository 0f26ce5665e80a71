//! Handles the events of a worker, by kind of message.

use std::sync::Arc;

use log::{Level, Record, kv};
use serde_json::Value;

use crate::{
    connection::{Connection, Services},
    lifecycle::WorkerIdentity,
    outputs,
    transport::Message,
    wire::{ProtocolError, Reader, ResponseHead, flag, kind},
};

/// Log target for lines of models' own loggers. Below the level of warnings, the log accepts only this program's own
/// modules.
const LOG_TARGET: &str = "galatea_worker::model_code";

pub(crate) fn handle<S: Services>(
    connection: &Arc<Connection<S>>,
    message: &Message<'_>,
) -> Result<(), ProtocolError> {
    let header = message.packet.header;
    match header.kind {
        kind::RESPONSE => respond(connection, message),
        kind::LOG => {
            let entry = message.json()?;
            let output = entry.get("once_of_output").and_then(Value::as_str);
            if output.is_none_or(|name| connection.told.is_new_name(name)) {
                log_entry(connection.lifecycle.identity(), header.id, &entry);
            }
            Ok(())
        }
        kind::RELEASE_TO_SERVER | kind::TRIMMED => Ok(()),
        _ => S::handle(connection, message),
    }
}

/// Passes on a response to a request that has a response sender.
fn respond<S: Services>(
    connection: &Connection<S>,
    message: &Message<'_>,
) -> Result<(), ProtocolError> {
    let header = message.packet.header;
    let requests = &connection.requests;
    let content = if header.has(flag::EMPTY) {
        None
    } else {
        let head = ResponseHead::read(&mut Reader::new(message.packet.payload.meta))?;
        let request = requests.get(header.id);
        let (config, request) = (connection.config.as_deref(), request.as_deref());
        Some(outputs::read(config, &connection.told, &head, message, request)?)
    };
    requests.respond(header.id, content, header.has(flag::FINAL));
    Ok(())
}

fn log_entry(identity: &WorkerIdentity, level: u64, entry: &Value) {
    let level = match level {
        0 => Level::Info,
        1 => Level::Warn,
        2 => Level::Error,
        3 => Level::Debug,
        _ => Level::Trace,
    };
    let text = |field| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let line = entry.get("line").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    if level > log::max_level() {
        return;
    }
    log::logger().log(
        &Record::builder()
            .level(level)
            .target(LOG_TARGET)
            .file(Some(text("file")))
            .line(line)
            .key_values(&[
                ("model", kv::Value::from(&*identity.model)),
                ("version", identity.version.into()),
            ])
            .args(format_args!("{}", text("message")))
            .build(),
    );
}

//! Calls of a worker to the server other than inference: model control, metrics, the state of a request.

use std::{collections::BTreeMap, sync::Arc, thread};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use galatea_types::{Buffer, Error, Result};
use galatea_worker::{
    Message,
    wire::{OutgoingMessage, ProtocolError, code_number, flag, kind},
};
use serde_json::Value;

use super::{PythonConnection, PythonServices};
use crate::worker_rules::ModelControlRule;

/// Prefix of file names, as in load requests over HTTP.
const FILE_PREFIX: &str = "file:";

/// Executes a call and sends its result, at once or from a thread of its own.
pub(crate) fn start(
    connection: &Arc<PythonConnection>,
    message: &Message<'_>,
) -> Result<(), ProtocolError> {
    let call = message.packet.header.id;
    let fields = message.json()?;
    let operation = fields.get("op").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(result) = connection.services.metrics.call(&operation, &fields) {
        send_result(connection, call, result);
        return Ok(());
    }
    let result = match operation.as_str() {
        "is_cancelled" => {
            let key = fields.get("key").and_then(Value::as_u64).unwrap_or_default();
            Ok(connection.requests.is_cancelled(key).into())
        }
        "is_decoupled" => {
            let models = &connection.services.server.models;
            let result = version(&fields).and_then(|v| models.is_decoupled(name(&fields), v));
            result.map(Value::from)
        }
        "load_model" | "unload_model" | "is_model_ready" => {
            control(connection, call, operation, fields);
            return Ok(());
        }
        _ => Err(Error::unsupported(format!("unknown operation '{operation}'"))),
    };
    send_result(connection, call, result);
    Ok(())
}

/// Most calls that take a thread each. A model that loads others waits for each. One that asks without waiting must not take
/// all threads.
const MAX_CONTROL_CALLS: usize = 128;

/// Executes a control call on its own thread. A load or a model's readiness check may take long, and the model may need the
/// event thread.
fn control(connection: &Arc<PythonConnection>, call: u64, operation: String, fields: Value) {
    let calls = &connection.services.control_calls;
    // Only the event thread starts them.
    if Arc::strong_count(calls) > MAX_CONTROL_CALLS {
        return send_result(
            connection,
            call,
            Err(Error::unavailable(format!(
                "the model already has {MAX_CONTROL_CALLS} open calls of this kind, the most it may have"
            ))),
        );
    }
    let (on_thread, place) = (connection.clone(), calls.clone());
    let work = move || {
        let _place = place;
        let result = carry_out(&on_thread.services, &operation, &fields);
        send_result(&on_thread, call, result);
    };
    let started = thread::Builder::new().name("python-control".to_owned()).spawn(work);
    if let Err(error) = started {
        let failed = Error::unavailable(format!("no thread to control models: {error}"));
        send_result(connection, call, Err(failed));
    }
}

fn carry_out(services: &PythonServices, operation: &str, fields: &Value) -> Result<Value> {
    let control = &services.server.control;
    match operation {
        "load_model" => {
            check_control(&services.model_control, brings_changes(fields))?;
            let config = fields.get("config").and_then(Value::as_str).filter(|c| !c.is_empty());
            let config = config.map(str::to_owned);
            control.load_model(name(fields), config, files(fields)?).map(|()| Value::Null)
        }
        "unload_model" => {
            check_control(&services.model_control, false)?;
            let unload_dependents = fields.get("unload_dependents").and_then(Value::as_bool);
            let unload_dependents = unload_dependents.unwrap_or(false);
            control.unload_model(name(fields), unload_dependents).map(|()| Value::Null)
        }
        _ => Ok(control.is_model_ready(name(fields), version(fields)?).into()),
    }
}

/// Checks that the policy of the calling model allows it to control models. `brings_changes`: with files or a configuration.
fn check_control(rule: &ModelControlRule, brings_changes: bool) -> Result<()> {
    match rule {
        ModelControlRule::OfTheRepository if brings_changes => Err(Error::unsupported(
            "an isolated model may load other models only as the model repository has them: without a configuration \
             and without files of its own",
        )),
        ModelControlRule::Free | ModelControlRule::OfTheRepository => Ok(()),
        ModelControlRule::Refused { model, because } => Err(Error::unsupported(format!(
            "model '{model}' may not load or unload models ({because}); --python-model-control={model} allows it"
        ))),
    }
}

fn brings_changes(fields: &Value) -> bool {
    let has_config = fields.get("config").and_then(Value::as_str).is_some_and(|c| !c.is_empty());
    has_config || fields.get("files").and_then(Value::as_object).is_some_and(|f| !f.is_empty())
}

fn name(fields: &Value) -> &str {
    fields.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn version(fields: &Value) -> Result<Option<i64>> {
    match fields.get("version") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_i64().filter(|&n| n >= 0)),
        Some(Value::String(text)) if text.is_empty() || text == "-1" => Ok(None),
        Some(Value::String(text)) => text.parse().map(Some).map_err(|_| {
            Error::invalid_arg(format!(
                "failed to get model version from specified version string '{text}' (details: stol), version should be \
                 an integral value > 0"
            ))
        }),
        Some(_) => Err(Error::invalid_arg("a model version must be text")),
    }
}

fn files(fields: &Value) -> Result<BTreeMap<String, Buffer>> {
    let files = fields.get("files").and_then(Value::as_object).into_iter().flatten();
    let decode = |(path, content): (&String, &Value)| {
        let content = STANDARD.decode(content.as_str().unwrap_or_default());
        let content = content.map_err(|error| {
            Error::invalid_arg(format!("content of file '{path}' is damaged: {error}"))
        })?;
        let name = path
            .strip_prefix(FILE_PREFIX)
            .ok_or_else(|| Error::invalid_arg(format!("unrecognized load parameter '{path}'.")))?;
        Ok((name.to_owned(), content.into()))
    };
    files.map(decode).collect()
}

fn send_result(connection: &PythonConnection, call: u64, result: Result<Value>) {
    let mut message = OutgoingMessage::new(kind::CALL_RESULT, call);
    match result {
        Ok(value) => message.meta = value.to_string().into_bytes(),
        Err(error) => {
            message.flags = flag::ERROR;
            message.count = code_number(error.code()).into();
            message.meta = error.message().as_bytes().to_vec();
        }
    }
    let is_dead = connection.lifecycle.is_dead();
    if !is_dead && connection.channels.send_event(&message).is_err() {
        log::error!("the result of a call of {} was lost", connection.lifecycle.identity());
    }
}

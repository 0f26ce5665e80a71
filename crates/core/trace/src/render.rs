//! A trace as the objects of Triton's files.

use std::fmt::Write;

use crate::{
    request_trace::{Event, RequestTrace, TracedTensor},
    sink::FinishedTrace,
    tensor_text::escape,
};

/// The most bytes of an event behind the beginning that it shares with others: a name, a number and the marks around them.
const LONGEST_EVENT: usize = 64;

/// Appends the objects of a trace, separated by commas.
pub(crate) fn trace(trace: &FinishedTrace, out: &mut String) {
    for request in &trace.requests {
        let (before, after) =
            request.events.split_at(request.events_before_model.min(request.events.len()));
        timestamps(request.id, before, out);
        model(request, out);
        timestamps(request.id, after, out);
        request.tensors.iter().for_each(|one| tensor(request.id, one, out));
    }
}

fn begin(id: u64, out: &mut String) {
    if !out.is_empty() {
        out.push(',');
    }
    out.push_str("{\"id\":");
    number(id, out);
}

fn number(value: impl itoa::Integer, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// Appends an object for each event. They differ by name and time alone.
fn timestamps(id: u64, events: &[Event], out: &mut String) {
    let mut before = String::with_capacity(64);
    begin(id, &mut before);
    before.push_str(",\"timestamps\":[{\"name\":\"");
    out.reserve(events.len() * (before.len() + LONGEST_EVENT));
    for event in events {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&before);
        out.push_str(event.name);
        out.push_str("\",\"ns\":");
        number(event.ns, out);
        out.push_str("}]}");
    }
}

fn text(name: &str, value: &str, out: &mut String) {
    let _ = write!(out, ",\"{name}\":\"");
    escape(value, out);
    out.push('"');
}

fn model(request: &RequestTrace, out: &mut String) {
    let Some(model) = &request.model else { return };
    begin(request.id, out);
    text("model_name", model, out);
    out.push_str(",\"model_version\":");
    number(request.version, out);
    if !request.request_id.is_empty() {
        text("request_id", &request.request_id, out);
    }
    if request.parent_id != 0 {
        out.push_str(",\"parent_id\":");
        number(request.parent_id, out);
    }
    out.push('}');
}

fn tensor(id: u64, tensor: &TracedTensor, out: &mut String) {
    begin(id, out);
    text("activity", tensor.place.activity(), out);
    out.push_str(",\"tensor\":{\"name\":\"");
    escape(&tensor.name, out);
    let _ = write!(
        out,
        "\",\"data\":\"{}\",\"shape\":\"{}\",\"dtype\":\"{}\"}}}}",
        tensor.data,
        tensor.shape,
        tensor.data_type.protocol_name()
    );
}

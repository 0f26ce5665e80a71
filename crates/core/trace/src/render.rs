//! A trace as the objects of Triton's files.

use std::fmt::Write;

use crate::{
    request_trace::{RequestTrace, TracedTensor},
    sink::FinishedTrace,
    tensor_text::escape,
};

/// Appends the objects of a trace, separated by commas.
pub(crate) fn trace(trace: &FinishedTrace, out: &mut String) {
    for request in &trace.requests {
        let (before, after) =
            request.events.split_at(request.events_before_model.min(request.events.len()));
        before.iter().for_each(|event| timestamp(request.id, event.name, event.ns, out));
        model(request, out);
        after.iter().for_each(|event| timestamp(request.id, event.name, event.ns, out));
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

fn timestamp(id: u64, name: &str, ns: u64, out: &mut String) {
    begin(id, out);
    out.push_str(",\"timestamps\":[{\"name\":\"");
    out.push_str(name);
    out.push_str("\",\"ns\":");
    number(ns, out);
    out.push_str("}]}");
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

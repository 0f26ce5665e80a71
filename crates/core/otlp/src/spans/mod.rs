//! The spans of a finished trace.
//!
//! A client's request is a span with the events of the front end. Below it, each model has a span, and below that the computation
//! has one. The models of steps and calls are below the model that caused them.

use std::collections::HashMap;

use galatea_trace::{Event, FinishedTrace, RequestTrace, TracePlace};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::messages::{KIND_SERVER, KeyValue, STATUS_ERROR, Span, SpanEvent, Status};

/// The name of a client's request.
const REQUEST: &str = "InferRequest";
/// The name of a computation.
const COMPUTE: &str = "compute";
/// The status of a request that no model has taken and that has no other text.
const REFUSED: &str = "the request was refused";
/// The flag of a trace that is recorded.
const SAMPLED: u32 = 1;

/// The part of a trace that has a span of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    FrontEnd,
    Model,
    Compute,
}

impl Part {
    fn of(event: &Event) -> Self {
        match event.name {
            "REQUEST_START" | "QUEUE_START" | "REQUEST_END" => Self::Model,
            "COMPUTE_START" | "COMPUTE_INPUT_END" | "COMPUTE_OUTPUT_START" | "COMPUTE_END" => {
                Self::Compute
            }
            _ => Self::FrontEnd,
        }
    }
}

/// The distance between the machine's monotonic clock and the time of day, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeOfDay(i128);

impl TimeOfDay {
    /// Reads both clocks.
    pub fn now() -> Self {
        let ns = |clock| {
            let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
            i128::from(tv_sec) * 1_000_000_000 + i128::from(tv_nsec)
        };
        Self(ns(ClockId::Realtime) - ns(ClockId::Monotonic))
    }

    fn of(self, event: &Event) -> u64 {
        u64::try_from(i128::from(event.ns) + self.0).unwrap_or(0)
    }
}

/// Returns how many spans the trace has at most.
pub(crate) fn most_spans(trace: &FinishedTrace) -> usize {
    if trace.has_timestamps { 1 + 2 * trace.requests.len() } else { 1 }
}

/// Returns the spans of a trace. One that found no room has none.
pub(crate) fn spans(trace: &FinishedTrace, time: TimeOfDay) -> Vec<Span> {
    let (Some(place), [first, ..]) = (&trace.place, &trace.requests[..]) else {
        return Vec::new();
    };
    let tree = Tree { place, time, failure: trace.failure.as_deref() };
    let mut spans = vec![tree.request(first, trace.has_timestamps)];
    if trace.has_timestamps {
        let ids: HashMap<u64, u64> =
            trace.requests.iter().map(|request| (request.id, request.span_id)).collect();
        for (index, request) in trace.requests.iter().enumerate() {
            let parent = ids.get(&request.parent_id).copied();
            let parent = parent.unwrap_or_else(|| place.request.span_id());
            spans.extend(tree.model(request, parent, index == 0));
            spans.extend(tree.compute(request));
        }
    }
    spans
}

struct Tree<'a> {
    place: &'a TracePlace,
    time: TimeOfDay,
    /// The reason why the front end answered with an error.
    failure: Option<&'a str>,
}

impl Tree<'_> {
    /// Returns the span of the client's request, from its first event to its last.
    fn request(&self, request: &RequestTrace, has_timestamps: bool) -> Span {
        let mut span = self.span(REQUEST, self.place.request.span_id(), self.place.client_span);
        self.set_times(&mut span, request.events.iter());
        if has_timestamps {
            span.events = self.events(request, Part::FrontEnd);
        }
        let failure = self.failure.or(request.error.as_deref());
        span.status = failure.map(status);
        span
    }

    /// Returns the span of a model's work on a request. A request that could not be read has none.
    fn model(&self, request: &RequestTrace, parent: u64, is_first: bool) -> Option<Span> {
        let model = request.model.as_deref()?;
        let mut span = self.span(model, request.span_id, parent);
        self.set_times(&mut span, events_of(request, Part::Model));
        span.events = self.events(request, Part::Model);
        let id = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
        span.attributes = vec![
            KeyValue::text("triton.model_name", model),
            KeyValue::number("triton.model_version", request.version),
            KeyValue::number("triton.trace_id", id(request.id)),
            KeyValue::number("triton.trace_parent_id", id(request.parent_id)),
        ];
        if !request.request_id.is_empty() {
            span.attributes.push(KeyValue::text("triton.request_id", &request.request_id));
        }
        let has = |name| request.events.iter().any(|event| event.name == name);
        let is_refused = has("REQUEST_END") && !has("QUEUE_START");
        let reason = self.failure.filter(|_| is_first).unwrap_or(REFUSED);
        let error = request.error.as_deref().or(is_refused.then_some(reason));
        span.status = error.map(status);
        Some(span)
    }

    fn compute(&self, request: &RequestTrace) -> Option<Span> {
        events_of(request, Part::Compute).next()?;
        let mut span = self.span(COMPUTE, fastrand::u64(1..), request.span_id);
        self.set_times(&mut span, events_of(request, Part::Compute));
        span.events = self.events(request, Part::Compute);
        span.status = request.error.as_deref().map(status);
        Some(span)
    }

    fn span(&self, name: &str, id: u64, parent: u64) -> Span {
        let trace = &self.place.request;
        let parent = (parent != 0).then(|| parent.to_be_bytes().to_vec());
        Span {
            trace_id: trace.trace_id().to_be_bytes().to_vec(),
            span_id: id.to_be_bytes().to_vec(),
            trace_state: trace.state().unwrap_or_default().to_owned(),
            parent_span_id: parent.unwrap_or_default(),
            name: name.to_owned(),
            kind: KIND_SERVER,
            flags: SAMPLED,
            ..Span::default()
        }
    }

    fn set_times<'e>(&self, span: &mut Span, events: impl Iterator<Item = &'e Event> + Clone) {
        let times = events.map(|event| self.time.of(event));
        span.start_time_unix_nano = times.clone().min().unwrap_or(0);
        span.end_time_unix_nano = times.max().unwrap_or(0);
    }

    /// Returns the events of a part, in the order of their time.
    fn events(&self, request: &RequestTrace, part: Part) -> Vec<SpanEvent> {
        let event = |event: &Event| SpanEvent {
            time_unix_nano: self.time.of(event),
            name: event.name.to_owned(),
        };
        let mut events: Vec<_> = events_of(request, part).map(event).collect();
        events.sort_by_key(|event| event.time_unix_nano);
        events
    }
}

fn events_of(request: &RequestTrace, part: Part) -> impl Iterator<Item = &Event> + Clone {
    request.events.iter().filter(move |event| Part::of(event) == part)
}

fn status(error: &str) -> Status {
    Status { message: error.to_owned(), code: STATUS_ERROR }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

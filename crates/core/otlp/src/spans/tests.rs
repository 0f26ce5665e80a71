//! The spans of requests of all kinds, and which requests have spans.

use galatea_trace::{Levels, NumberField, SettingsChange};
use galatea_types::{Cause, Protocol, TraceContext};

use super::{
    testing::{Played, RequestOutcome, TIMESTAMPS, traces},
    *,
};
use crate::messages::{AnyValue, Value};

const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn client() -> TraceContext {
    TraceContext::parse(HEADER.as_bytes()).expect("good").with_state(b"a=1")
}

/// The spans of the only trace.
fn only(played: &Played) -> Vec<Span> {
    let traces = played.take();
    assert_eq!(traces.len(), 1);
    let spans = spans(&traces[0], TimeOfDay(0));
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert!(spans.iter().all(|span| span.kind == KIND_SERVER), "{names:?}");
    spans
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| &*span.name).collect()
}

fn events(span: &Span) -> Vec<&str> {
    span.events.iter().map(|event| &*event.name).collect()
}

fn error(span: &Span) -> Option<&str> {
    span.status.as_ref().map(|status| &*status.message)
}

fn attribute(span: &Span, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    let AnyValue { value } = found.value.clone()?;
    value
}

#[test]
fn a_request_has_three_spans_below_that_of_its_client() {
    let played = Played::new(TIMESTAMPS);
    let front_end = played.begin(Some(client()));
    let observer = front_end.observer().expect("traced");
    let context = observer.trace_context().expect("exported");
    played.run(observer, "m", RequestOutcome::Computed);
    played.end(*front_end);
    let spans = only(&played);
    let [request, model, compute] = &spans[..] else { panic!("{:?}", names(&spans)) };
    assert_eq!(names(&spans), ["InferRequest", "m", "compute"]);
    for span in &spans {
        assert_eq!(span.trace_id, client().trace_id().to_be_bytes());
        assert_eq!((&*span.trace_state, span.flags, error(span)), ("a=1", 1, None));
    }
    assert_eq!(request.parent_span_id, client().span_id().to_be_bytes());
    assert_eq!(model.parent_span_id, request.span_id);
    assert_eq!(compute.parent_span_id, model.span_id);
    // The model gets the id of its own span, of a trace that is recorded.
    assert_eq!(context.span_id().to_be_bytes(), *model.span_id);
    assert!(context.to_string().ends_with("-01") && context.state() == Some("a=1"));
    assert_eq!(
        events(request),
        [
            "HTTP_RECV_START",
            "HTTP_RECV_END",
            "INFER_RESPONSE_COMPLETE",
            "HTTP_SEND_START",
            "HTTP_SEND_END"
        ]
    );
    assert_eq!(events(model), ["REQUEST_START", "QUEUE_START", "REQUEST_END"]);
    assert_eq!(
        events(compute),
        ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
    );
    let start = request.start_time_unix_nano;
    let times = |span: &Span| (span.start_time_unix_nano - start, span.end_time_unix_nano - start);
    assert_eq!([times(request), times(model), times(compute)], [(0, 50), (20, 40), (30, 40)]);
    let keys: Vec<_> = model.attributes.iter().map(|attribute| &*attribute.key).collect();
    let expected = ["model_name", "model_version", "trace_id", "trace_parent_id", "request_id"];
    assert_eq!(keys, expected.map(|name| format!("triton.{name}")));
    assert_eq!(attribute(model, "triton.model_version"), Some(Value::IntValue(3)));
    assert_eq!(attribute(model, "triton.trace_parent_id"), Some(Value::IntValue(0)));
    assert!(request.attributes.is_empty() && compute.attributes.is_empty());
}

#[test]
fn steps_and_calls_are_below_the_model_that_causes_them() {
    let played = Played::new(TIMESTAMPS);
    let front_end = played.begin(None);
    let whole = front_end.observer().expect("traced");
    played.run(whole.clone(), "ensemble", RequestOutcome::Answered);
    let step = whole.clone().child("caller", Cause::Step).expect("traced");
    played.run(step.clone(), "caller", RequestOutcome::Computed);
    let silent = step.clone().child("x", Cause::ModelCall { passes_trace: false });
    assert!(silent.is_none());
    let call = step.clone().child("called", Cause::ModelCall { passes_trace: true });
    played.run(call.expect("traced"), "called", RequestOutcome::Computed);
    drop((whole, step));
    played.end(*front_end);
    let spans = only(&played);
    let of = |name: &str| spans.iter().find(|span| span.name == name).expect(name);
    let expected = ["InferRequest", "ensemble", "caller", "compute", "called", "compute"];
    assert_eq!(names(&spans), expected);
    assert!(of("InferRequest").parent_span_id.is_empty());
    for (child, parent) in
        [("ensemble", "InferRequest"), ("caller", "ensemble"), ("called", "caller")]
    {
        assert_eq!(of(child).parent_span_id, of(parent).span_id, "{child}");
    }
    assert_eq!(spans[5].parent_span_id, of("called").span_id);
    let id = attribute(of("caller"), "triton.trace_id");
    assert_eq!(attribute(of("called"), "triton.trace_parent_id"), id);
    assert!(spans.iter().all(|span| span.trace_id == spans[0].trace_id && span.status.is_none()));
}

#[test]
fn failed_and_refused_requests_have_an_error() {
    let played = Played::new(TIMESTAMPS);
    for (outcome, told, expected) in [
        (RequestOutcome::Failed, "it broke for the client", Some("it broke")),
        (RequestOutcome::Refused, "no such input", Some("no such input")),
    ] {
        let front_end = played.begin(None);
        played.run(front_end.observer().expect("traced"), "m", outcome);
        front_end.record_failure(told);
        played.end(*front_end);
        let spans = only(&played);
        assert_eq!((error(&spans[0]), error(&spans[1])), (Some(told), expected));
        assert_eq!(spans[0].status.as_ref().map(|status| status.code), Some(STATUS_ERROR));
        let compute = spans.get(2).map(error);
        assert_eq!(compute, (outcome == RequestOutcome::Failed).then_some(Some("it broke")));
    }
    // A body that could not be read reaches no model.
    let front_end = played.begin(None);
    front_end.record_failure("no JSON");
    played.end(*front_end);
    let spans = only(&played);
    assert_eq!((names(&spans), error(&spans[0])), (vec!["InferRequest"], Some("no JSON")));
}

#[test]
fn the_level_tensors_alone_gives_a_bare_span() {
    let played = Played::new(Levels { timestamps: false, tensors: true });
    let front_end = played.begin(None);
    let observer = front_end.observer().expect("traced");
    let context = observer.trace_context().expect("exported");
    played.run(observer, "m", RequestOutcome::Computed);
    played.end(*front_end);
    let spans = only(&played);
    assert_eq!((names(&spans), events(&spans[0]).len()), (vec!["InferRequest"], 0));
    assert!(spans[0].start_time_unix_nano < spans[0].end_time_unix_nano);
    assert_eq!(context.span_id().to_be_bytes(), *spans[0].span_id);
}

#[test]
fn a_request_of_a_clients_trace_is_traced_whatever_rate_and_count_say() {
    let played = Played::new(TIMESTAMPS);
    let change = |field, text: &str| {
        let mut change = SettingsChange::default();
        change.set(field, text, Protocol::Http).expect("a number");
        played.tracer.change(None, &change).expect("good");
    };
    let begin = |client: Option<TraceContext>| {
        let client = client.map(galatea_trace::ClientSpan::below);
        let mut front_end = played.tracer.begin(Protocol::Http, client.as_ref())?;
        front_end.set_model("m");
        front_end.observer()
    };
    change(NumberField::Rate, "1000");
    assert!(begin(None).is_none() && begin(Some(client())).is_some());
    // It takes from the count if the rate has chosen it, and goes on when the count is used up.
    change(NumberField::Rate, "1");
    change(NumberField::Count, "1");
    assert!(begin(Some(client())).is_some());
    assert!(begin(None).is_none() && begin(Some(client())).is_some());
    let mut off = SettingsChange::default();
    off.set_levels(&["OFF"]).expect("a level");
    played.tracer.change(None, &off).expect("good");
    assert!(begin(Some(client())).is_none());
    played.tracer.close();
    assert!(begin(Some(client())).is_none());
}

#[test]
fn each_trace_without_a_client_has_an_id_of_its_own() {
    let [one, two] = &traces(2)[..] else { panic!("two traces") };
    let ids = [one, two].map(|trace| spans(trace, TimeOfDay(0))[0].trace_id.clone());
    assert!(ids[0] != ids[1] && ids[0].len() == 16);
    let moved = spans(one, TimeOfDay(1_000))[0].start_time_unix_nano;
    assert_eq!(moved - spans(one, TimeOfDay(0))[0].start_time_unix_nano, 1_000);
}

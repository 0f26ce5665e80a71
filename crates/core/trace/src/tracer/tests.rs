//! Which requests are traced, and what their traces hold.

use std::time::Duration;

use galatea_types::{
    Cause, DataType, InferRequest, InferResponse, ManualClock, Observers, Origin, Protocol,
    RequestStart, Responder, Tensor, Timeline,
};

use super::*;
use crate::{
    change::NumberField, level::Levels, request_trace::RequestTrace, sink::FinishedTrace,
    trace_memory,
};

/// Keeps the traces that it is given.
#[derive(Debug, Default)]
struct Kept {
    traces: Mutex<Vec<FinishedTrace>>,
    retired: Mutex<Vec<u64>>,
}

impl TraceSink for Kept {
    fn finished(&self, trace: FinishedTrace) {
        self.traces.lock_unpoisoned().push(trace);
    }

    fn retired(&self, setting: u64) {
        self.retired.lock_unpoisoned().push(setting);
    }

    fn lost(&self) {}

    fn close(&self) {}
}

const BOTH: Levels = Levels { timestamps: true, tensors: true };

fn tracer(levels: Levels, rate: u32) -> (Arc<Tracer>, Arc<Kept>, ManualClock) {
    let settings = Settings { levels, rate, ..Settings::default() };
    let options = TraceOptions { settings, file: "t".into(), ..TraceOptions::default() };
    let (sink, clock) = (Arc::new(Kept::default()), ManualClock::new());
    (Arc::new(Tracer::with_sink(options, sink.clone(), clock.clock())), sink, clock)
}

fn request() -> InferRequest {
    let input = Tensor::new("IN", DataType::Int8, [1, 2], vec![1, 255]);
    let empty = Tensor::new("NONE", DataType::Int8, [0], vec![]);
    InferRequest { id: "7".into(), inputs: vec![input, empty], ..InferRequest::new("m") }
}

fn response() -> InferResponse {
    InferResponse {
        model_name: "m".into(),
        model_version: 3,
        id: String::new(),
        parameters: Vec::new(),
        outputs: vec![Tensor::new("OUT", DataType::Fp32, [1], 0.5f32.to_le_bytes().to_vec())],
    }
}

/// Plays a request up to its answer.
fn play(tracer: &Arc<Tracer>, clock: &ManualClock, has_queue: bool) -> bool {
    let Some(mut front_end) = tracer.begin(Protocol::Http, None) else { return false };
    let tick = || clock.advance(Duration::from_nanos(10));
    tick();
    front_end.record_received();
    front_end.set_model("m");
    let Some(observer) = front_end.observer() else { return false };
    let mut observers = Observers::default();
    observers.add(observer);
    tick();
    let (request, origin) = (request(), Origin::default());
    observers.start(&RequestStart { request: &request, version: 3, origin: &origin });
    let responder = observers.watch(Responder::unary().0);
    let mut timeline = Timeline::new(clock.now());
    if has_queue {
        timeline.queued = Some(clock.now());
        timeline.compute_start = Some(clock.now());
    }
    tick();
    timeline.end = Some(clock.now());
    observers.finish(&timeline);
    drop(responder);
    let sending = front_end.begin_sending().expect("traced");
    tick();
    sending.finish();
    true
}

fn events(trace: &FinishedTrace, index: usize) -> Vec<&str> {
    trace.requests[index].events.iter().map(|event| event.name).collect()
}

fn text(trace: &FinishedTrace) -> String {
    let mut text = String::new();
    crate::render::trace(trace, &mut text);
    text
}

#[test]
fn a_trace_holds_the_events_of_its_request() {
    let (tracer, sink, clock) = tracer(BOTH, 1);
    assert!(play(&tracer, &clock, true));
    let traces = sink.traces.lock_unpoisoned();
    let first = &traces[0].requests[0];
    let start = first.events[0].ns;
    let at = |name| first.events.iter().find(|e| e.name == name).expect(name).ns - start;
    assert_eq!((at("HTTP_RECV_END"), at("REQUEST_START"), at("REQUEST_END")), (10, 20, 30));
    assert_eq!(at("HTTP_SEND_END"), 40);
    let text = text(&traces[0]);
    let objects: Vec<serde_json::Value> =
        serde_json::from_str(&format!("[{text}]")).expect("JSON objects");
    let model = r#"{"id":1,"model_name":"m","model_version":3,"request_id":"7"}"#;
    assert_eq!(objects[2].to_string(), model);
    let tensor = r#"{"id":1,"activity":"TENSOR_QUEUE_INPUT","tensor":{"name":"IN","data":"1,-1","shape":"1,2","dtype":"INT8"}}"#;
    assert!(text.ends_with(tensor), "{text}");
}

#[test]
fn a_caller_that_is_gone_gets_no_response_complete() {
    let (tracer, sink, clock) = tracer(Levels { timestamps: true, tensors: false }, 1);
    // `play` has dropped the receiver of the answer.
    assert!(play(&tracer, &clock, true));
    let traces = sink.traces.lock_unpoisoned();
    assert!(!events(&traces[0], 0).contains(&"INFER_RESPONSE_COMPLETE"));
    assert!(traces[0].requests[0].tensors.is_empty());
}

#[test]
fn responses_are_shown_and_an_answer_without_a_queue_counts_as_queued() {
    let (tracer, sink, clock) = tracer(BOTH, 1);
    let mut front_end = tracer.begin(Protocol::Grpc, None).expect("on");
    front_end.set_model("m");
    let mut observers = Observers::default();
    observers.add(front_end.observer().expect("traced"));
    let (request, origin) = (request(), Origin::default());
    observers.start(&RequestStart { request: &request, version: 3, origin: &origin });
    let (responder, _answer) = Responder::unary();
    let responder = observers.watch(responder);
    observers.finish(&Timeline { end: Some(clock.now()), ..Timeline::new(clock.now()) });
    responder.finish(Ok(response()));
    drop((front_end, observers));
    let traces = sink.traces.lock_unpoisoned();
    let expected = [
        "GRPC_WAITREAD_START",
        "REQUEST_START",
        "REQUEST_END",
        "QUEUE_START",
        "INFER_RESPONSE_COMPLETE",
    ];
    assert_eq!(events(&traces[0], 0), expected);
    assert!(text(&traces[0]).contains(r#""name":"OUT","data":"0.5","shape":"1","dtype":"FP32"#));
}

#[test]
fn steps_are_children_and_calls_only_if_the_model_passes_its_trace() {
    let (tracer, sink, _clock) = tracer(Levels { timestamps: true, tensors: false }, 1);
    let mut front_end = tracer.begin(Protocol::Http, None).expect("on");
    front_end.set_model("m");
    let parent = front_end.observer().expect("traced");
    let (request, origin) = (InferRequest::new("step"), Origin::Model);
    let start = RequestStart { request: &request, version: 1, origin: &origin };
    parent.start(&start);
    let call = |passes_trace| parent.clone().child("step", Cause::ModelCall { passes_trace });
    assert!(call(false).is_none());
    let step = parent.clone().child("step", Cause::Step).expect("traced");
    let unstarted = call(true).expect("traced");
    step.start(&start);
    drop((front_end, parent));
    assert!(sink.traces.lock_unpoisoned().is_empty(), "a step is at work");
    drop((step, unstarted));
    let traces = sink.traces.lock_unpoisoned();
    let ids: Vec<_> = traces[0].requests.iter().map(|r| (r.id, r.parent_id)).collect();
    assert_eq!(ids, [(1, 0), (2, 1)], "a call to an unknown model takes no id");
}

#[test]
fn every_nth_request_is_traced_and_a_change_starts_anew() {
    let (tracer, sink, clock) = tracer(Levels { timestamps: true, tensors: false }, 2);
    let traced = |n: u32| (0..n).filter(|_| play(&tracer, &clock, true)).count();
    assert_eq!(traced(3), 1);
    tracer.change(None, &SettingsChange::default()).expect("good");
    assert_eq!(*sink.retired.lock_unpoisoned(), [0]);
    assert_eq!(traced(2), 1);
    let mut count = SettingsChange::default();
    count.set(NumberField::Count, "1", Protocol::Http).expect("a number");
    tracer.change(None, &count).expect("good");
    assert_eq!(traced(9), 1);
    assert!(tracer.begin(Protocol::Http, None).is_none(), "nothing is left to trace");
    let left = tracer.settings(None).into_iter().find(|(name, _)| name == "trace_count");
    assert_eq!(left.map(|(_, value)| value), Some(SettingValue::One("0".into())));
    count.clear(NumberField::Count);
    tracer.change(Some("m"), &SettingsChange::default()).expect("good");
    tracer.change(None, &count).expect("good");
    assert_eq!(traced(2), 1);
    tracer.close();
    assert!(tracer.begin(Protocol::Http, None).is_none());
}

#[test]
fn a_request_without_a_model_or_that_is_off_is_not_traced() {
    let off = Arc::new(Tracer::default());
    assert!(off.begin(Protocol::Http, None).is_none());
    let (tracer, sink, _clock) = tracer(BOTH, 1);
    drop(tracer.begin(Protocol::Http, None).expect("on"));
    assert!(sink.traces.lock_unpoisoned().is_empty());
    let mut unread = tracer.begin(Protocol::Http, None).expect("on");
    unread.set_model("m");
    unread.record_received();
    drop(unread);
    let traces = sink.traces.lock_unpoisoned();
    assert_eq!(events(&traces[0], 0), ["HTTP_RECV_START", "HTTP_RECV_END"]);
    assert!(!text(&traces[0]).contains("model_name"));
}

#[test]
fn long_tensors_are_left_out_and_text_takes_room_before_it_is_written() {
    let traced = |data: Vec<u8>| {
        let (tracer, sink, _) = tracer(BOTH, 1);
        let mut front_end = tracer.begin(Protocol::Http, None).expect("on");
        front_end.set_model("m");
        let mut observers = Observers::default();
        observers.add(front_end.observer().expect("traced"));
        let mut request = InferRequest::new("m");
        request.inputs.push(Tensor::new("IN", DataType::Uint8, [data.len() as i64], data));
        let origin = Origin::default();
        observers.start(&RequestStart { request: &request, version: 1, origin: &origin });
        drop((observers, front_end));
        let used = tracer.recorder().memory.used();
        (sink.traces.lock_unpoisoned()[0].requests[0].tensors.len(), tracer.lost(), used)
    };
    let (tensors, lost, used) = traced(vec![9; 1 << 20]);
    assert_eq!((tensors, lost), (1, 0));
    assert!(used >> 20 == 2, "a digit and a comma for each element: {used}");
    assert_eq!(traced(vec![9; (1 << 20) + 1]).1, 1);
}

#[test]
fn all_memory_of_a_trace_is_counted() {
    let (tracer, sink, clock) = tracer(Levels { timestamps: true, tensors: false }, 1);
    assert!(play(&tracer, &clock, true));
    let traces = sink.traces.lock_unpoisoned();
    let taken = traces[0].requests.capacity() * size_of::<RequestTrace>();
    assert!(traces[0].held.bytes() >= taken, "{} of {taken}", traces[0].held.bytes());
}

#[test]
fn traces_without_room_are_lost_and_counted() {
    let (tracer, sink, clock) = tracer(BOTH, 1);
    let mut held = tracer.recorder().memory.hold();
    assert!(held.try_grow(trace_memory::MOST));
    assert!(play(&tracer, &clock, true));
    assert!(tracer.lost() > 0);
    assert!(sink.traces.lock_unpoisoned()[0].requests.is_empty());
    drop(held);
    sink.traces.lock_unpoisoned().clear();
    assert_eq!(tracer.recorder().memory.used(), 0);
}

//! What the access log has of requests.

use std::{fs, path::Path};

use galatea_telemetry::access_log::{AccessFormat, AccessTarget};
use galatea_trace::{Levels, Settings, TraceOptions};
use galatea_types::Timeline;

use super::*;

const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const CALL: Call<'_> =
    Call { protocol: "http", method: "POST", path: "/v2/models/simple/versions/1/infer" };

fn client() -> Option<TraceContext> {
    TraceContext::parse(HEADER.as_bytes())
}

fn peer() -> Peer {
    Peer::Tcp("127.0.0.1:4000".parse().expect("an address"))
}

/// The lines without their time and durations, of what `act` does with a log.
fn lines(act: impl FnOnce(&RequestLog)) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let target = AccessTarget::File(path.clone());
    let access = AccessLog::open(&target, AccessFormat::Text).expect("open");
    act(&RequestLog::default().with_access_log(Arc::new(access)));
    read(&path)
}

fn read(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("text");
    let is_stable =
        |field: &&str| !field.starts_with("total_us=") && !field.starts_with("span_id=");
    let stable =
        |line: &str| line.split(' ').skip(1).filter(is_stable).collect::<Vec<_>>().join(" ");
    text.lines().map(stable).collect()
}

const OK: Answer<'_> = Answer { status: 200, bytes: 40, is_good: true, failure: None };

#[test]
fn a_request_is_logged_with_all_its_fields() {
    let lines = lines(|log| {
        let mut exchange = log.begin(peer(), &CALL, client());
        exchange.record_received(300);
        exchange.record_model(&"simple".into(), 1);
        let mut context = RequestContext::new();
        let request = InferRequest { id: "7".to_owned(), ..InferRequest::new("simple") };
        exchange.record_submitted(&request, &mut context);
        let span = context.trace_context.as_ref().expect("a span");
        assert_eq!(Some(span.trace_id()), client().map(|client| client.trace_id()));
        let start = context.timeline.received;
        let at = |us| Some(start + std::time::Duration::from_micros(us));
        assert!(context.timeline.arrived.is_some_and(|arrived| arrived <= start));
        context.timeline = Timeline { queued: at(1), compute_start: at(6), ..context.timeline };
        context.finish(start + std::time::Duration::from_micros(16));
        exchange.finish(|| CALL, &OK);
    });
    assert_eq!(
        lines,
        [
            "id=7 peer=127.0.0.1:4000 protocol=http method=POST path=/v2/models/simple/versions/1/infer \
          model=simple version=1 status=200 bytes_in=300 bytes_out=40 queue_us=5 compute_us=10 \
          trace_id=0af7651916cd43dd8448eb211c80319c parent_id=b7ad6b7169203331 identity=-"
        ]
    );
}

#[test]
fn a_dropped_request_is_logged_as_cancelled() {
    let lines = lines(|log| {
        drop(log.begin(Peer::Unix, &CALL, None));
        drop(log.begin(Peer::Unix, &Call { protocol: "grpc", ..CALL }, None));
    });
    let [http, grpc] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(http.contains("peer=unix protocol=http") && http.contains(" status=499 "), "{http}");
    assert!(http.ends_with("queue_us=- compute_us=- trace_id=- parent_id=- identity=-"), "{http}");
    assert!(grpc.contains(" status=1 "), "{grpc}");
}

#[test]
fn a_request_with_a_panicking_handler_is_logged_as_a_server_error() {
    let lines = lines(|log| {
        for protocol in ["http", "grpc"] {
            let exchange = log.begin(Peer::Unix, &Call { protocol, ..CALL }, None);
            let handler = std::panic::AssertUnwindSafe(move || {
                let _exchange = exchange;
                panic!("on purpose");
            });
            std::panic::catch_unwind(handler).expect_err("a panic");
        }
    });
    let [http, grpc] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(http.contains(" status=500 ") && grpc.contains(" status=13 "), "{lines:?}");
}

#[test]
fn clients_are_named_by_their_address() {
    assert_eq!(Peer::Unix.to_string(), "unix");
    for address in ["0.0.0.0:0", "255.1.20.255:65535", "[fe80::1]:80"] {
        assert_eq!(Peer::Tcp(address.parse().expect("an address")).to_string(), address);
    }
}

#[test]
fn a_request_is_logged_once() {
    let lines = lines(|log| {
        let mut exchange = log.begin(peer(), &CALL, None);
        exchange.finish(|| CALL, &OK);
        exchange.finish(|| CALL, &OK);
    });
    assert_eq!(lines.len(), 1);
}

#[test]
fn each_request_of_a_stream_is_logged() {
    let lines = lines(|log| {
        let mut call = log.begin(peer(), &CALL, client());
        for id in ["a", "b"] {
            let mut one = log.begin_next(&call);
            let mut subject = Subject::default();
            subject.set_id(id);
            one.set_subject(subject);
            one.finish(|| CALL, &OK);
        }
        call.finish(|| CALL, &OK);
    });
    let ids: Vec<_> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(ids, ["id=a", "id=b", "id=-"]);
}

#[test]
fn without_an_access_log_requests_have_no_observers() {
    let mut exchange = RequestLog::default().begin(peer(), &CALL, None);
    let mut context = RequestContext::new();
    exchange.record_submitted(&InferRequest::new("m"), &mut context);
    assert!(context.observers.is_empty() && context.trace_context.is_none());
    exchange.finish(|| CALL, &OK);
}

#[test]
fn failed_health_checks_are_logged() {
    let lines = lines(|log| {
        for (status, is_good) in [(200, true), (400, false)] {
            let mut exchange = log.begin(peer(), &CALL, None);
            exchange.mark_routine();
            exchange.finish(|| CALL, &Answer { status, bytes: 0, is_good, failure: None });
        }
    });
    assert!(lines.len() == 1 && lines.iter().all(|line| line.contains("status=400")), "{lines:?}");
}

#[test]
fn only_a_request_that_is_chosen_is_traced() {
    let levels = Levels { timestamps: true, ..Levels::OFF };
    let settings = Settings { levels, rate: 2, ..Settings::default() };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("t.json");
    let options = TraceOptions { settings, file: file.clone(), ..TraceOptions::default() };
    let tracer = Arc::new(Tracer::new(options));
    let log = RequestLog::default().with_tracer(tracer.clone());
    let call = log.begin(peer(), &CALL, None);
    for is_traced in [false, true, false] {
        let mut exchange = log.begin_next(&call);
        exchange.record_model(&"m".into(), 1);
        let mut context = RequestContext::new();
        exchange.record_submitted(&InferRequest::new("m"), &mut context);
        assert_eq!(!context.observers.is_empty(), is_traced);
        let sending = exchange.begin_sending();
        assert_eq!(sending.is_some(), is_traced);
        exchange.finish(|| CALL, &OK);
        sending.into_iter().for_each(SendTrace::finish);
    }
    drop(call);
    tracer.close();
    let text = fs::read_to_string(file).expect("a file");
    for event in ["HTTP_RECV_START", "HTTP_SEND_START", "HTTP_SEND_END"] {
        assert_eq!(text.matches(event).count(), 1, "{event}: {text}");
    }
}

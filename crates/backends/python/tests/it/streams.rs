//! Response senders and decoupled models.

use std::error::Error as _;

use galatea_backend::{
    Batch, ModelInstance, PendingRequest,
    testing::{ResponseStream, stream},
};
use galatea_types::{PreparedRequest, RequestContext, Response};

use crate::common::{TIMEOUT, Written, bytes, request};

/// Responds from another thread after `execute` has returned. The input: how many responses, of how many kB.
const COUNTS: &str = r#"
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(request.inputs()[0].as_numpy()[0])
            size = int(request.inputs()[0].as_numpy()[1])
            threading.Thread(target=self.send, args=(sender, count, size)).start()
        return None

    def send(self, sender, count, size):
        for n in range(count):
            if sender.is_cancelled():
                break
            data = np.full(size * 1000 + 1, n % 256, dtype=np.uint8)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"#;

fn start(instance: &mut dyn ModelInstance, request: PreparedRequest) -> ResponseStream {
    start_in(instance, request, RequestContext::new())
}

fn start_in(
    instance: &mut dyn ModelInstance,
    request: PreparedRequest,
    context: RequestContext,
) -> ResponseStream {
    let (responder, stream) = stream();
    let pending = PendingRequest::new(request, context, responder);
    let mut batch = Batch::new("m".into(), 1, vec![pending]);
    instance.execute(&mut batch);
    // Answers of requests that stayed in the batch go out as the scheduler sends them.
    for (pending, outcome) in batch.into_outcomes() {
        if let galatea_backend::Outcome::Answered(result) = outcome {
            pending.responder.finish(result);
        }
    }
    stream
}

fn next(stream: &mut ResponseStream) -> Response {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let wait = async { tokio::time::timeout(TIMEOUT, stream.recv()).await };
    runtime.expect("a runtime").block_on(wait).expect("in time").expect("a response")
}

/// Bodies until the end.
fn all(mut stream: ResponseStream) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    loop {
        let Response { result, is_final } = next(&mut stream);
        bodies.extend(
            result.map(|r| r.expect("a body").outputs[0].host().expect("host memory").to_vec()),
        );
        if is_final {
            return bodies;
        }
    }
}

#[test]
fn a_request_may_have_any_number_of_responses_in_order() {
    let (mut instance, _loaded) = Written::class(COUNTS).decoupled().instance();
    for (count, size) in [(0, 0), (1, 0), (200, 1), (200, 100)] {
        let stream = start(&mut *instance, request(bytes(&[count, size])));
        let bodies = all(stream);
        assert_eq!(bodies.len(), usize::from(count));
        for (n, body) in bodies.iter().enumerate() {
            assert_eq!(body.len(), usize::from(size) * 1000 + 1);
            assert!(body.iter().all(|&byte| usize::from(byte) == n), "response {n}");
        }
    }
}

#[test]
fn a_worker_serves_several_streams_at_once() {
    let (mut instance, _loaded) = Written::class(COUNTS).decoupled().instance();
    let streams: Vec<_> =
        (1..20).map(|n| (n, start(&mut *instance, request(bytes(&[n, 50]))))).collect();
    for (n, stream) in streams {
        assert_eq!(all(stream).len(), usize::from(n));
    }
}

#[test]
fn streams_end_with_their_worker() {
    let class = r#"
    global KEPT
    KEPT = []

    def execute(self, requests):
        KEPT.extend(r.get_response_sender() for r in requests)
        if requests[0].inputs()[0].as_numpy()[0] == 1:
            os._exit(1)
        return None
"#;
    let loaded = Written::class(class).decoupled().load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let mut first = start(&mut *instance, request(bytes(&[0])));
    let mut second = start(&mut *instance, request(bytes(&[1])));
    for stream in [&mut first, &mut second] {
        let last = next(stream);
        let error = last.result.expect("a result").expect_err("an error");
        assert!(last.is_final && error.message().contains("exited with code 1"), "{error}");
    }
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
}

#[test]
fn an_exception_ends_the_streams_of_its_execution() {
    let body = "        raise ValueError('no streams')\n";
    let (mut instance, _loaded) = Written::execute(body).decoupled().instance();
    let last = next(&mut start(&mut *instance, request(bytes(&[1]))));
    let error = last.result.expect("a result").expect_err("an error");
    assert!(last.is_final && error.message().contains("no streams"), "{error}");
    let traceback = error.source().expect("a source").to_string();
    assert!(traceback.ends_with("ValueError: no streams"), "{traceback}");
}

#[test]
fn a_cancelled_request_stops_its_stream() {
    let (mut instance, _loaded) = Written::class(COUNTS).decoupled().instance();
    let sent = request(bytes(&[250, 100]));
    let context = RequestContext::new();
    context.cancellation.cancel();
    let stream = start_in(&mut *instance, sent, context);
    assert_eq!(all(stream).len(), 0);
}

#[test]
fn models_with_one_response_may_use_a_response_sender() {
    let class = r#"
    def execute(self, requests):
        for request in requests:
            data = np.full(3, 8, dtype=np.uint8)
            request.get_response_sender().send(
                pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]),
                flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return [None for _ in requests]
"#;
    let (mut instance, _loaded) = Written::class(class).instance();
    let stream = start(&mut *instance, request(bytes(&[1])));
    assert_eq!(all(stream), [[8, 8, 8]]);
}

//! Quick ways to build what a test of a backend needs, and to run it.

use std::sync::{Arc, mpsc};

use galatea_config::{InstanceGroup, InstanceKind};
use galatea_types::{
    Cancellation, Error, InferRequest, InferResponse, PreparedRequest, RequestContext, Responder,
    Response, ResponseSink, Result, Tensor,
};
use tokio::sync::oneshot;

use crate::{
    Batch, InstanceAlarm, InstanceSpec, LoadContext, ModelInstance, Outcome, PendingRequest,
    ServerAccess, testing::Fixture,
};

/// Where the answer to a request arrives.
pub type Answer = oneshot::Receiver<Result<InferResponse>>;

/// What a backend is given to load `fixture`.
pub fn load_context(fixture: &Fixture) -> LoadContext {
    LoadContext {
        config: Arc::new(fixture.config.clone()),
        version: fixture.version,
        version_dir: fixture.model_dir.join(fixture.version.to_string()),
        model_dir: fixture.model_dir.clone(),
        backend_config: fixture.backend_config.clone(),
        paths: crate::PathRules::anywhere(),
        server: ServerAccess::default(),
    }
}

/// The CPU instance number `index` of a model.
pub fn instance_spec(model: &str, index: usize) -> InstanceSpec {
    let name = format!("{model}_0_{index}");
    InstanceSpec {
        name,
        group: Arc::new(InstanceGroup::of_cpu(&format!("{model}_0"))),
        kind: InstanceKind::Cpu,
        device_id: 0,
        index,
        alarm: InstanceAlarm::default(),
    }
}

/// A request for every output, with `batch_size` items.
pub fn request(model: &str, batch_size: u32, inputs: Vec<Tensor>) -> PreparedRequest {
    prepared(InferRequest { inputs, ..InferRequest::new(model) }, batch_size)
}

/// The request as if it had been checked and found to have `batch_size` items.
pub fn prepared(request: InferRequest, batch_size: u32) -> PreparedRequest {
    PreparedRequest::assume_checked(request, batch_size)
}

/// The request with a change that leaves its batch size.
pub fn adjusted(
    request: PreparedRequest,
    change: impl FnOnce(&mut InferRequest),
) -> PreparedRequest {
    let batch_size = request.batch_size();
    let mut request = request.into_request();
    change(&mut request);
    prepared(request, batch_size)
}

/// The request on its way, as a scheduler has it, and where its answer arrives.
pub fn pending(request: PreparedRequest) -> (PendingRequest, Answer) {
    let (responder, answer) = Responder::unary();
    (PendingRequest::new(request, queued_now(), responder), answer)
}

/// Of a request that was received and queued this moment.
fn queued_now() -> RequestContext {
    let mut context = RequestContext::new();
    context.timeline.queued = Some(context.timeline.received);
    context
}

/// Responses on their way to a test.
pub type ResponseStream = tokio::sync::mpsc::UnboundedReceiver<Response>;

struct Forward(tokio::sync::mpsc::UnboundedSender<Response>);

impl ResponseSink for Forward {
    fn respond(&mut self, response: Response) {
        // A test that has seen enough reads no more.
        let _ = self.0.send(response);
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// A responder for any number of responses, and where they arrive.
pub fn stream() -> (Responder, ResponseStream) {
    let (sender, stream) = tokio::sync::mpsc::unbounded_channel();
    (Responder::calling(Forward(sender)), stream)
}

/// Executes a request of a decoupled model: where its responses arrive.
pub fn run_stream(
    instance: &mut dyn ModelInstance,
    request: PreparedRequest,
    cancellation: Cancellation,
) -> mpsc::Receiver<Response> {
    let (sender, stream) = mpsc::channel();
    let responder = Responder::calling(Channel { sender, is_closed: false });
    let context = RequestContext { cancellation, ..queued_now() };
    let model = request.model_name.clone();
    let mut batch = Batch::new(model, 1, vec![PendingRequest::new(request, context, responder)]);
    instance.execute(&mut batch);
    for (pending, outcome) in batch.into_outcomes() {
        match outcome {
            Outcome::Answered(result) => pending.responder.finish(result),
            // Dropped, the responder answers with an error.
            Outcome::Unanswered | Outcome::ExecutedAgain => {}
        }
    }
    stream
}

/// As [`Forward`], to a receiver that can wait for a limited time.
struct Channel {
    sender: mpsc::Sender<Response>,
    is_closed: bool,
}

impl ResponseSink for Channel {
    fn respond(&mut self, response: Response) {
        self.is_closed = self.sender.send(response).is_err();
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Executes the requests as one batch and gives back their answers in the same order.
///
/// # Panics
/// When a request is taken out of the batch: its answer would be somewhere else.
pub fn run_batch(
    instance: &mut dyn ModelInstance,
    requests: Vec<PreparedRequest>,
) -> Vec<Result<InferResponse>> {
    let Some(first) = requests.first() else { return Vec::new() };
    let model = first.model_name.clone();
    // Nobody listens: the answers are read from the batch itself.
    let mut batch = Batch::new(model, 1, requests.into_iter().map(|r| pending(r).0));
    instance.execute(&mut batch);
    assert_eq!(batch.taken().requests, 0, "the instance answers later");
    let answer = |outcome| match outcome {
        Outcome::Answered(result) => result,
        Outcome::Unanswered | Outcome::ExecutedAgain => {
            Err(Error::internal("the instance gave no answer"))
        }
    };
    batch.into_outcomes().map(|(_, outcome)| answer(outcome)).collect()
}

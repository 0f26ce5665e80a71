//! Builds requests, instances and contexts for tests of a backend, and runs them.

use std::sync::{Arc, mpsc};

use galatea_config::{InstanceGroup, InstanceKind};
use galatea_types::{
    Cancellation, Error, InferRequest, InferResponse, PreparedRequest, RequestContext, Responder,
    Response, ResponseSink, Result, Tensor,
};
use tokio::sync::oneshot;

use crate::{
    Batch, InstanceAlarm, InstanceSpec, LoadContext, Model, ModelInstance, Outcome, PendingRequest,
    RequestEnd, RequestObserver, SequenceStates, ServerAccess,
    testing::{Fixture, Subject},
};

/// Receives the response to a request.
pub type Answer = oneshot::Receiver<Result<InferResponse>>;

/// Returns the context for loading `fixture`.
pub fn load_context(fixture: &Fixture) -> LoadContext {
    LoadContext {
        config: Arc::new(fixture.config.clone()),
        version: fixture.version,
        version_dir: fixture.model_dir.join(fixture.version.to_string()),
        model_dir: fixture.model_dir.clone(),
        backend_config: fixture.backend_config.clone(),
        paths: crate::PathRules::anywhere(),
        server: ServerAccess::default(),
        devices: crate::Devices::default(),
    }
}

/// Loads the model of a fixture.
pub(super) fn load(subject: &dyn Subject, fixture: &Fixture) -> Result<Box<dyn Model>, String> {
    subject.backend().load(load_context(fixture)).map_err(|e| format!("loading failed: {e}"))
}

/// Makes an instance of the model.
pub(super) fn instance(
    model: &dyn Model,
    fixture: &Fixture,
    index: usize,
) -> Result<Box<dyn ModelInstance>, String> {
    let spec = instance_spec(fixture.config.name(), index);
    model.new_instance(&spec).map_err(|e| format!("making an instance failed: {e}"))
}

/// Returns the CPU instance number `index` of a model.
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

/// Returns a request for every output, with `batch_size` items.
pub fn request(model: &str, batch_size: u32, inputs: Vec<Tensor>) -> PreparedRequest {
    prepared(InferRequest { inputs, ..InferRequest::new(model) }, batch_size)
}

/// Returns the request as if it had been checked and found to have `batch_size` items.
pub fn prepared(request: InferRequest, batch_size: u32) -> PreparedRequest {
    PreparedRequest::assume_checked(request, batch_size)
}

/// Returns the request with a change that keeps its batch size.
pub fn adjusted(
    request: PreparedRequest,
    change: impl FnOnce(&mut InferRequest),
) -> PreparedRequest {
    let batch_size = request.batch_size();
    let mut request = request.into_request();
    change(&mut request);
    prepared(request, batch_size)
}

/// Returns the request as a scheduler has it, and the receiver of its response.
pub fn pending(request: PreparedRequest) -> (PendingRequest, Answer) {
    let (responder, answer) = Responder::unary();
    (PendingRequest::new(request, queued_now(), responder), answer)
}

/// Returns the context of a request that was received and queued now.
fn queued_now() -> RequestContext {
    let mut context = RequestContext::new();
    context.timeline.queued = Some(context.timeline.received);
    context
}

/// Receives responses in a test.
pub type ResponseStream = tokio::sync::mpsc::UnboundedReceiver<Response>;

struct Forward(tokio::sync::mpsc::UnboundedSender<Response>);

impl ResponseSink for Forward {
    fn respond(&mut self, response: Response) {
        // A test that has seen enough stops receiving.
        let _ = self.0.send(response);
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Returns a responder for any number of responses, and their receiver.
pub fn stream() -> (Responder, ResponseStream) {
    let (sender, stream) = tokio::sync::mpsc::unbounded_channel();
    (Responder::calling(Forward(sender)), stream)
}

/// Executes a request of a decoupled model and returns the receiver of its responses.
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
            // Dropping the responder answers with an error.
            Outcome::Unanswered | Outcome::ExecutedAgain => {}
        }
    }
    stream
}

/// Like [`Forward`], for a receiver that can wait for a limited time.
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

/// Executes the requests as one batch and returns their responses in the same order, also of those answered later.
pub fn run_batch(
    instance: &mut dyn ModelInstance,
    requests: Vec<PreparedRequest>,
) -> Vec<Result<InferResponse>> {
    let Some(first) = requests.first() else { return Vec::new() };
    let model = first.model_name.clone();
    let (pending, answers): (Vec<_>, Vec<_>) = requests.into_iter().map(pending).unzip();
    let mut batch = Batch::new(model, 1, pending);
    instance.execute(&mut batch);
    let is_taken: Vec<bool> = (0..batch.len()).map(|i| batch.request(i).is_none()).collect();
    let mut outcomes = batch.into_outcomes();
    let answers = answers.into_iter().zip(is_taken);
    let answer = |(answer, is_taken): (Answer, bool)| match is_taken {
        true => answer.blocking_recv().unwrap_or_else(|_| Err(no_answer())),
        // Read from the batch, because nobody receives from the responder.
        false => outcomes.next().map_or_else(|| Err(no_answer()), |(_, outcome)| of(outcome)),
    };
    answers.map(answer).collect()
}

/// Executes one request of a sequence with these states. Returns its response and the states that it leaves.
pub(super) fn run_step(
    instance: &mut dyn ModelInstance,
    request: PreparedRequest,
    states: SequenceStates,
) -> (Result<InferResponse>, SequenceStates) {
    let (mut pending, answer) = pending(request);
    pending.request.add_inputs(states.inputs().cloned());
    pending.states = states;
    let model = pending.request.model_name.clone();
    let mut batch = Batch::new(model, 1, [pending]);
    let (left, states) = mpsc::channel();
    batch.observe(Arc::new(StatesOf(left)));
    instance.execute(&mut batch);
    if batch.request(0).is_none() {
        drop(batch);
        let answer = answer.blocking_recv().unwrap_or_else(|_| Err(no_answer()));
        return (answer, states.recv().unwrap_or_default());
    }
    let states = batch.take_states(0);
    let outcome = batch.into_outcomes().next();
    (outcome.map_or_else(|| Err(no_answer()), |(_, outcome)| of(outcome)), states)
}

/// Takes the states of a request that is answered later.
struct StatesOf(mpsc::Sender<SequenceStates>);

impl RequestObserver for StatesOf {
    fn take_states(&self, _: usize, states: SequenceStates) {
        // The test may be over once it has its response.
        let _ = self.0.send(states);
    }

    fn ended(&self, _: RequestEnd<'_>) {}
}

fn of(outcome: Outcome) -> Result<InferResponse> {
    match outcome {
        Outcome::Answered(result) => result,
        Outcome::Unanswered | Outcome::ExecutedAgain => Err(no_answer()),
    }
}

fn no_answer() -> Error {
    Error::internal("the instance gave no answer")
}

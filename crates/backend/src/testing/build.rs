use std::{
    sync::{Arc, mpsc},
    time::Instant,
};

use galatea_config::InstanceKind;
use galatea_types::{
    Error, InferRequest, InferResponse, Responder, Response, ResponseSink, Result, Tensor,
};
use tokio::sync::oneshot;

use crate::{
    Batch, InstanceAlarm, InstanceSpec, Job, LoadContext, ModelInstance, Outcome, ServerAccess,
    testing::Fixture,
};

/// Where the answer to a job arrives.
pub type Answer = oneshot::Receiver<Result<InferResponse>>;

/// What a backend is given to load `fixture`.
pub fn load_context(fixture: &Fixture) -> LoadContext {
    LoadContext {
        config: Arc::new(fixture.config.clone()),
        version: fixture.version,
        version_dir: fixture.model_dir.join(fixture.version.to_string()),
        model_dir: fixture.model_dir.clone(),
        backend_config: fixture.backend_config.clone(),
        server: ServerAccess::default(),
    }
}

/// The CPU instance number `index` of a model.
pub fn instance_spec(model: &str, index: usize) -> InstanceSpec {
    let name = format!("{model}_0_{index}");
    InstanceSpec {
        name,
        kind: InstanceKind::Cpu,
        device_id: 0,
        index,
        alarm: InstanceAlarm::default(),
    }
}

/// A request for every output, with `batch_size` items.
pub fn request(model: &str, batch_size: u32, inputs: Vec<Tensor>) -> InferRequest {
    InferRequest { batch_size, inputs, ..InferRequest::new(model) }
}

/// The request on its way, as a scheduler has it, and where its answer arrives.
pub fn job(request: InferRequest) -> (Job, Answer) {
    let (responder, answer) = Responder::unary();
    (Job { request, responder, queued_at: Instant::now() }, answer)
}

/// Executes a request of a decoupled model: where its responses arrive.
pub fn run_stream(
    instance: &mut dyn ModelInstance,
    request: InferRequest,
) -> mpsc::Receiver<Response> {
    let (sender, stream) = mpsc::channel();
    let responder = Responder::calling(Forward { sender, is_closed: false });
    let model = request.model_name.clone();
    let mut batch =
        Batch::new(model, 1, vec![Job { request, responder, queued_at: Instant::now() }]);
    instance.execute(&mut batch);
    for (job, outcome) in batch.into_outcomes() {
        match outcome {
            Outcome::Answered(result) => job.responder.finish(result),
            // Dropped, the way back answers with an error.
            Outcome::Unanswered | Outcome::NotBegun | Outcome::Detached => {}
        }
    }
    stream
}

/// Responses on their way to a test.
struct Forward {
    sender: mpsc::Sender<Response>,
    is_closed: bool,
}

impl ResponseSink for Forward {
    fn respond(&mut self, response: Response) {
        self.is_closed = self.sender.send(response).is_err();
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Executes the requests as one batch and gives back their answers in the same order.
pub fn run_batch(
    instance: &mut dyn ModelInstance,
    requests: Vec<InferRequest>,
) -> Vec<Result<InferResponse>> {
    let Some(first) = requests.first() else { return Vec::new() };
    let model = first.model_name.clone();
    // Nobody listens: the answers are read from the batch itself.
    let jobs = requests.into_iter().map(|r| job(r).0).collect();
    let mut batch = Batch::new(model, 1, jobs);
    instance.execute(&mut batch);
    let answer = |outcome| match outcome {
        Outcome::Answered(result) => result,
        Outcome::Unanswered => Err(Error::internal("the instance gave no answer")),
        Outcome::NotBegun => Err(Error::internal("the instance did not begin")),
        Outcome::Detached => Err(Error::internal("the instance answers later")),
    };
    batch.into_outcomes().map(|(_, outcome)| answer(outcome)).collect()
}

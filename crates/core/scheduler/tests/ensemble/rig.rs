//! An ensemble whose models are closures, and what came out of it.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
};

use galatea_backend::{
    InferTarget,
    testing::{changed, model_config, prepared, tensors},
};
use galatea_config::{ModelConfig, RawModelConfig};
use galatea_scheduler::{EnsembleScheduler, EnsembleSpec, Scheduler, StepModel};
use galatea_telemetry::{DistributionSettings, ModelStatistics, StatisticsSnapshot};
use galatea_types::{
    DataType, InferRequest, InferResponse, ManualClock, Refused, RequestContext, Responder,
    Response, ResponseSink, Result, Tensor,
};

/// A request as it comes to a step's model.
pub struct StepRequest {
    pub request: InferRequest,
    pub context: RequestContext,
}

impl Deref for StepRequest {
    type Target = InferRequest;

    fn deref(&self) -> &InferRequest {
        &self.request
    }
}

type Behaviour = Box<dyn Fn(StepRequest, Responder) + Send + Sync>;

/// A model that is a closure.
struct Fake(Behaviour);

impl InferTarget for Fake {
    fn infer(
        &self,
        request: InferRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        (self.0)(StepRequest { request, context }, responder);
        Ok(())
    }

    fn is_decoupled(&self, _: &str, _: Option<i64>) -> Result<bool> {
        Ok(false)
    }
}

/// `"a=b c=d"`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().map(|pair| pair.split_once('=').expect("a pair"))
}

/// A step's model, built up with what the test is about.
pub struct StepSetup {
    config: ModelConfig,
    /// The text of the step in the ensemble's configuration.
    step: String,
    behaviour: Behaviour,
}

/// A step of model `name`; maps are written `"model=ensemble ..."`. It answers each output with the bytes of
/// all its inputs, one after the other, at once.
pub fn step(name: &str, inputs: &str, outputs: &str) -> StepSetup {
    let names = |text| pairs(text).map(|(model, _)| model).collect::<Vec<_>>();
    let config = model_config(&format!(
        "name: '{name}' backend: 'fake' {} {}",
        tensors("input", names(inputs), DataType::Uint8, &[-1]),
        tensors("output", names(outputs), DataType::Uint8, &[-1]),
    ));
    let map = |field: &str, text| -> String {
        pairs(text).map(|(m, e)| format!("{field} {{ key: '{m}' value: '{e}' }} ")).collect()
    };
    let (input_map, output_map) = (map("input_map", inputs), map("output_map", outputs));
    let step =
        format!("step {{ model_name: '{name}' model_version: -1 {input_map} {output_map} }}\n");
    let outputs: Vec<Arc<str>> = config.outputs().iter().map(|o| o.name.clone()).collect();
    let behaviour = Box::new(move |request: StepRequest, responder: Responder| {
        responder.finish(Ok(joined(&request, &outputs)));
    });
    StepSetup { config, step, behaviour }
}

/// For [`StepSetup::with`]: the model may answer any number of times.
pub fn decoupled(config: &mut RawModelConfig) {
    config.model_transaction_policy.get_or_insert_default().decoupled = true;
}

impl StepSetup {
    pub fn with(mut self, adjust: impl FnOnce(&mut RawModelConfig)) -> Self {
        self.config = changed(&self.config, adjust);
        self
    }

    pub fn doing(self, f: impl Fn(StepRequest, Responder) + Send + Sync + 'static) -> Self {
        Self { behaviour: Box::new(f), ..self }
    }

    /// Requests wait in the queue until the test answers them.
    pub fn queued(self, queue: &Queue) -> Self {
        let queue = queue.clone();
        let name = self.config.name().clone();
        self.doing(move |request, responder| {
            assert_eq!(request.model_name, name);
            queue.0.lock().expect("queue").push_back((request, responder));
        })
    }
}

pub fn joined(request: &InferRequest, outputs: &[Arc<str>]) -> InferResponse {
    let bytes: Vec<u8> =
        request.inputs.iter().flat_map(|t| t.host().expect("host memory").to_vec()).collect();
    let tensor = |name: &Arc<str>| tensor(name, &bytes);
    response(outputs.iter().map(tensor).collect())
}

pub fn tensor(name: &str, bytes: &[u8]) -> Tensor {
    let length = i64::try_from(bytes.len()).expect("short");
    Tensor::new(name, DataType::Uint8, [length], bytes.to_vec())
}

pub fn response(outputs: Vec<Tensor>) -> InferResponse {
    InferResponse {
        model_name: "fake".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs,
    }
}

/// Requests that wait for the test to answer them.
#[derive(Clone, Default)]
pub struct Queue(Arc<Mutex<VecDeque<(StepRequest, Responder)>>>);

impl Queue {
    pub fn len(&self) -> usize {
        self.0.lock().expect("queue").len()
    }

    pub fn take(&self) -> (StepRequest, Responder) {
        self.0.lock().expect("queue").pop_front().expect("a request waits")
    }

    /// Answers the request that waits longest.
    pub fn answer(&self, outputs: Vec<Tensor>) -> StepRequest {
        let (request, responder) = self.take();
        responder.finish(Ok(response(outputs)));
        request
    }
}

/// Everything that came out of the ensemble.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<Vec<Response>>>);

struct Noted(Answers);

impl ResponseSink for Noted {
    fn respond(&mut self, response: Response) {
        self.0.0.lock().expect("answers").push(response);
    }
}

impl Answers {
    pub fn count(&self) -> usize {
        self.0.lock().expect("answers").len()
    }

    /// The one answer there must be.
    pub fn only(&self) -> Result<InferResponse> {
        let mut answers = std::mem::take(&mut *self.0.lock().expect("answers"));
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer = answers.pop().expect("one");
        assert!(answer.is_final);
        answer.result.expect("not only the end")
    }

    /// `value` or `-` for an end alone, with `!` for the last one.
    pub fn outcomes(&self) -> Vec<String> {
        let outcomes = |response: &Response| {
            let what = match &response.result {
                None => "-".to_owned(),
                Some(Ok(answer)) => answer.outputs.iter().map(text).collect(),
                Some(Err(error)) => error.to_string(),
            };
            format!("{what}{}", if response.is_final { "!" } else { "" })
        };
        self.0.lock().expect("answers").iter().map(outcomes).collect()
    }
}

pub fn text(tensor: &Tensor) -> String {
    String::from_utf8_lossy(tensor.host().expect("host memory")).into_owned()
}

pub struct Rig {
    pub scheduler: Arc<EnsembleScheduler>,
    statistics: Arc<ModelStatistics>,
    /// Tells all times of the ensemble.
    pub clock: ManualClock,
}

/// An ensemble; inputs and outputs are names, an input with `?` is optional.
pub fn ensemble(inputs: &str, outputs: &str, steps: Vec<StepSetup>) -> Rig {
    build(inputs, outputs, steps, |_| {}, 0).expect("a sound graph")
}

pub fn build(
    inputs: &str,
    outputs: &str,
    steps: Vec<StepSetup>,
    adjust: impl FnOnce(&mut RawModelConfig),
    max_inflight_requests: u32,
) -> Result<Rig> {
    let tensor = |field: &str, name: &str| {
        let optional = if name.ends_with('?') { "optional: true" } else { "" };
        let name = name.trim_end_matches('?');
        format!("{field} {{ name: '{name}' data_type: TYPE_UINT8 dims: -1 {optional} }}\n")
    };
    let mut text = "name: 'ens' platform: 'ensemble'\n".to_owned();
    text.extend(inputs.split_whitespace().map(|name| tensor("input", name)));
    text.extend(outputs.split_whitespace().map(|name| tensor("output", name)));
    text += &format!("ensemble_scheduling {{ max_inflight_requests: {max_inflight_requests}\n");
    let mut models = Vec::new();
    for StepSetup { config, step, behaviour } in steps {
        models.push(StepModel { config: Arc::new(config), target: Arc::new(Fake(behaviour)) });
        text += &step;
    }
    let config = changed(&model_config(&(text + "}")), adjust);
    let clock = ManualClock::new();
    let settings = DistributionSettings::default();
    let statistics = Arc::new(ModelStatistics::new(&settings, clock.clock()));
    let spec = EnsembleSpec {
        config: Arc::new(config),
        version: 3,
        models,
        statistics: statistics.clone(),
    };
    Ok(Rig { scheduler: Arc::new(EnsembleScheduler::new(spec)?), statistics, clock })
}

impl Rig {
    pub fn submit(&self, request: InferRequest) -> Answers {
        self.submit_in(request, 1, RequestContext::received_at(self.clock.now()))
    }

    pub fn submit_in(
        &self,
        request: InferRequest,
        batch_size: u32,
        context: RequestContext,
    ) -> Answers {
        let request = prepared(request, batch_size);
        let answers = Answers::default();
        let responder = Responder::calling(Noted(answers.clone()));
        if let Err(refused) = self.scheduler.submit(request, context, responder) {
            refused.answer();
        }
        answers
    }

    pub fn ask(&self, inputs: Vec<Tensor>) -> Answers {
        self.submit(request(inputs))
    }

    pub fn statistics(&self) -> StatisticsSnapshot {
        self.statistics.snapshot()
    }
}

pub fn request(inputs: Vec<Tensor>) -> InferRequest {
    InferRequest { inputs, ..InferRequest::new("ens") }
}

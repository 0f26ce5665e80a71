//! Sequences whose states stay in the server: many, growing ones, begun, ended, cancelled and forgotten in any order.

use std::{
    sync::{Arc, LazyLock, mpsc},
    time::Instant,
};

use arbitrary::{Arbitrary, Unstructured};
use galatea_engine::{ControlMode, Engine};
use galatea_types::{
    CorrelationId, DataType, InferRequest, InferResponse, MemoryBudget, RequestContext, Responder,
    Response, ResponseSink, Result, Tensor,
};
use tempfile::TempDir;

use crate::server::{DEADLINE, add_model, engine_within};

const MOST_STEPS: usize = 64;
/// Room for a few states alone: each grows by 1 MiB with a step.
const BUDGET: usize = 16 << 20;

const MODELS: [(&str, &str); 2] = [
    (
        "growing",
        "data_type: TYPE_INT8 dims: [ 1024, 1024 ] use_same_buffer_for_input_output: true use_growable_memory: true",
    ),
    ("fixed", "data_type: TYPE_INT8 dims: [ 1024, 1024 ]"),
];

static REPOSITORY: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("folder");
    MODELS.iter().for_each(|(name, state)| add_model(root.path(), name, &config(state)));
    root
});

fn config(state: &str) -> String {
    let controls = ["START", "READY", "END"].map(|name| {
        format!(
            "control_input {{ name: \"{name}\" control {{ kind: CONTROL_SEQUENCE_{name} fp32_false_true: [0, 1] }} }} "
        )
    });
    let inputs = ["INPUT", "TEST_CASE"]
        .map(|name| format!("input {{ name: \"{name}\" data_type: TYPE_INT32 dims: 1 }} "));
    format!(
        "backend: \"implicit_state\" {} output {{ name: \"OUTPUT\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"OUTPUT_STATE\" data_type: TYPE_INT8 dims: -1 }} \
         sequence_batching {{ {} oldest {{ max_candidate_sequences: 32 }} state {{ input_name: \"INPUT_STATE\" output_name: \"OUTPUT_STATE\" {state} }} }}",
        inputs.concat(),
        controls.concat()
    )
}

#[derive(Arbitrary, Debug)]
struct Step {
    model: bool,
    sequence: u8,
    starts: bool,
    ends: bool,
    case: u8,
    /// Its client has gone when the answer comes.
    is_cancelled: bool,
    /// Its answer is not waited for before the next step.
    runs_on: bool,
}

struct Answer(mpsc::Sender<(bool, Option<Result<InferResponse>>)>);

impl ResponseSink for Answer {
    fn respond(&mut self, response: Response) {
        // Whoever does not wait has gone.
        let _ = self.0.send((response.is_final, response.result));
    }
}

/// Panics unless every request is answered exactly once, states keep to their part of the budget, and nothing of it is taken
/// when all is over.
pub fn run(data: &[u8]) {
    let Ok(steps) = Unstructured::new(data).arbitrary::<Vec<Step>>() else { return };
    let budget = MemoryBudget::new(BUDGET);
    let engine = engine_within(REPOSITORY.path(), ControlMode::None, budget.clone());
    engine.load_startup_models().expect("models load");
    let mut open = Vec::new();
    for step in steps.into_iter().take(MOST_STEPS) {
        let answers = step.send(&engine);
        match step.runs_on {
            true => open.push(answers),
            false => end_of(&answers),
        }
        // Of states alone, since nothing else is counted here.
        assert!(budget.used() <= BUDGET, "{} bytes are taken", budget.used());
    }
    open.iter().for_each(end_of);
    assert!(engine.shutdown(Instant::now() + DEADLINE), "the exit does not end");
    drop(engine);
    galatea_test_support::eventually("all memory is given back", || budget.used() == 0);
}

fn end_of(answers: &mpsc::Receiver<(bool, Option<Result<InferResponse>>)>) {
    let (is_final, _) = answers.recv_timeout(DEADLINE).expect("an answer");
    assert!(is_final && answers.recv().is_err(), "answered more than once");
}

impl Step {
    fn send(&self, engine: &Arc<Engine>) -> mpsc::Receiver<(bool, Option<Result<InferResponse>>)> {
        let (sender, answers) = mpsc::channel();
        let context = RequestContext::new();
        if self.is_cancelled {
            context.cancellation.cancel();
        }
        let request = self.request();
        let model = engine.model(&request.model_name, None).expect("it is ready");
        if let Err(refused) = model.infer(request, context, Responder::calling(Answer(sender))) {
            refused.answer();
        }
        answers
    }

    fn request(&self) -> InferRequest {
        let number = |name: &str, value: i32| {
            Tensor::new(name, DataType::Int32, [1], value.to_le_bytes().to_vec())
        };
        let name = MODELS[usize::from(self.model)].0;
        InferRequest {
            inputs: vec![number("INPUT", 1), number("TEST_CASE", i32::from(self.case % 5))],
            correlation_id: CorrelationId::Number(u64::from(self.sequence % 24) + 1),
            sequence_start: self.starts,
            sequence_end: self.ends,
            ..InferRequest::new(name)
        }
    }
}

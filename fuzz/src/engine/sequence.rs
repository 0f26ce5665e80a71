//! Sequences of loads, unloads, requests, cancellations and clients that go away, against a whole engine.
//!
//! The engine reads the real clock, and its models answer at once: which step comes before which answer is left to
//! the threads. What must hold does not depend on it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use arbitrary::{Arbitrary, Unstructured};
use galatea_engine::{ControlMode, Engine, LoadOverrides};
use galatea_test_support::eventually;
use galatea_types::{
    Cancellation, CorrelationId, DataType, InferRequest, RequestContext, Responder, Response,
    ResponseSink, Tensor,
};
use tempfile::TempDir;

use crate::server::{DEADLINE, add_model, engine};

/// More than that is only longer.
const MOST_STEPS: usize = 64;

/// Decoupled, batched, in sequence, and an ensemble of two of them.
const MODELS: [(&str, &str); 5] = [
    ("plain", TENSORS),
    (
        "batched",
        "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 200 priority_levels: 2 \
         default_priority_level: 1 default_queue_policy { max_queue_size: 4 allow_timeout_override: true } }",
    ),
    ("failing", "backend: \"failing\" max_batch_size: 4"),
    (
        "square",
        "backend: \"square\" max_batch_size: 4 model_transaction_policy { decoupled: true }",
    ),
    (
        "ensemble",
        "platform: \"ensemble\" max_batch_size: 4 ensemble_scheduling { \
         step { model_name: \"batched\" model_version: -1 \
           input_map { key: \"IN\" value: \"IN\" } output_map { key: \"OUT\" value: \"between\" } } \
         step { model_name: \"failing\" model_version: -1 \
           input_map { key: \"IN\" value: \"between\" } output_map { key: \"OUT\" value: \"OUT\" } } }",
    ),
];

const TENSORS: &str = "max_batch_size: 4";

static REPOSITORY: LazyLock<TempDir> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("folder");
    MODELS.iter().for_each(|(name, _)| add_model(root.path(), name, &config(name)));
    root
});

fn config(name: &str) -> String {
    let own = MODELS.iter().find(|(other, _)| *other == name).map_or("", |(_, own)| *own);
    let backend = if own.contains("backend") || own.contains("platform") {
        ""
    } else {
        "backend: \"identity\""
    };
    format!(
        "{backend} {own} input {{ name: \"IN\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"OUT\" data_type: TYPE_INT32 dims: 1 }}"
    )
}

#[derive(Arbitrary, Debug)]
enum Step {
    Load {
        model: u8,
        change: Change,
        in_background: bool,
    },
    Unload {
        model: u8,
        with_dependents: bool,
    },
    Infer(Infer),
    /// The client of a request does not wait any longer, and says so or not.
    Cancel(u8),
    Leave(u8),
    /// Of the answers so far.
    Await(u8),
    Look,
}

#[derive(Arbitrary, Debug)]
enum Change {
    None,
    Config(u8),
    Wrong,
}

#[derive(Arbitrary, Debug)]
struct Infer {
    model: u8,
    version: Option<bool>,
    rows: u8,
    value: u8,
    is_wrong: bool,
    timeout_us: Option<u8>,
    priority: u8,
    sequence: Option<u8>,
}

/// One client that waits for the responses to one request.
#[derive(Default)]
struct Client {
    finals: AtomicUsize,
    after_the_end: AtomicUsize,
    has_left: AtomicBool,
}

struct Listening(Arc<Client>);

impl ResponseSink for Listening {
    fn respond(&mut self, response: Response) {
        let is_over = self.0.finals.load(Ordering::SeqCst) > 0;
        self.0.after_the_end.fetch_add(usize::from(is_over), Ordering::SeqCst);
        self.0.finals.fetch_add(usize::from(response.is_final), Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.0.has_left.load(Ordering::SeqCst)
    }
}

struct Run {
    engine: Arc<Engine>,
    requests: Vec<(Arc<Client>, Cancellation)>,
    loads: Vec<thread::JoinHandle<()>>,
}

/// Panics unless every request is answered exactly once and the exit comes to its end.
pub fn run(data: &[u8]) {
    let Ok(steps) = Unstructured::new(data).arbitrary::<Vec<Step>>() else { return };
    let mut run = Run {
        engine: engine(REPOSITORY.path(), ControlMode::Explicit),
        requests: Vec::new(),
        loads: Vec::new(),
    };
    steps.into_iter().take(MOST_STEPS).for_each(|step| run.step(step));
    run.finish();
}

impl Run {
    fn step(&mut self, step: Step) {
        match step {
            Step::Load { model, change, in_background } => self.load(model, change, in_background),
            Step::Unload { model, with_dependents } => {
                let _ = self.engine.unload_model(name(model), with_dependents);
            }
            Step::Infer(infer) => self.infer(&infer),
            Step::Cancel(request) => {
                if let Some((_, cancellation)) = self.request(request) {
                    cancellation.cancel();
                }
            }
            Step::Leave(request) => {
                if let Some((client, _)) = self.request(request) {
                    client.has_left.store(true, Ordering::SeqCst);
                }
            }
            Step::Await(request) => {
                if let Some((client, _)) = self.request(request) {
                    eventually("the request is answered", || {
                        client.finals.load(Ordering::SeqCst) > 0
                    });
                }
            }
            Step::Look => self.look(),
        }
    }

    fn request(&self, number: u8) -> Option<&(Arc<Client>, Cancellation)> {
        self.requests.get(usize::from(number) % self.requests.len().max(1))
    }

    fn load(&mut self, model: u8, change: Change, in_background: bool) {
        let (name, engine) = (name(model), self.engine.clone());
        let load = move || {
            let config = change.config(name);
            let _ = engine.load_model(name, LoadOverrides { config, ..Default::default() });
        };
        match in_background && self.loads.len() < 4 {
            true => self.loads.push(thread::spawn(load)),
            false => load(),
        }
    }

    fn infer(&mut self, infer: &Infer) {
        let client = Arc::new(Client::default());
        let mut context = RequestContext::new();
        let cancellation = Cancellation::default();
        context.cancellation = cancellation.clone();
        let request = infer.request();
        let Ok(model) = self.engine.model(&request.model_name, request.model_version) else {
            return;
        };
        let responder = Responder::calling(Listening(client.clone()));
        if let Err(refused) = model.infer(request, context, responder) {
            refused.answer();
        }
        self.requests.push((client, cancellation));
    }

    /// What can be asked at any time.
    fn look(&self) {
        let engine = &self.engine;
        let index = engine.repository_index(false).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for row in &index {
            assert!(seen.insert((row.name.clone(), row.version)), "{} is listed twice", row.name);
        }
        let ready = engine.repository_index(true).unwrap_or_default();
        assert!(ready.iter().all(|row| row.state == Some("READY")));
        let _ = (engine.statistics(None, None), engine.metrics_text(), engine.is_ready());
    }

    fn finish(self) {
        self.look();
        for load in self.loads {
            load.join().expect("no panic");
        }
        assert!(self.engine.shutdown(Instant::now() + DEADLINE), "the exit does not end");
        for (client, _) in &self.requests {
            eventually("the request is answered", || client.finals.load(Ordering::SeqCst) > 0);
            assert_eq!(client.finals.load(Ordering::SeqCst), 1, "answered more than once");
            assert_eq!(client.after_the_end.load(Ordering::SeqCst), 0, "a response after the last");
        }
        assert!(
            self.engine.repository_index(true).unwrap_or_default().is_empty(),
            "ready after the exit"
        );
        eventually("nobody holds the engine", || Arc::strong_count(&self.engine) == 1);
    }
}

fn name(model: u8) -> &'static str {
    // One more, which does not exist.
    MODELS.get(usize::from(model) % (MODELS.len() + 1)).map_or("none", |(name, _)| name)
}

impl Change {
    fn config(&self, name: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::Wrong => Some("{\"backend\": \"none\"}".to_owned()),
            Self::Config(batch) => {
                let config = config(name).replacen("max_batch_size: 4", "", 1);
                let config = format!("max_batch_size: {} {config}", batch % 8 + 1);
                Some(galatea_config::to_json(&galatea_config::parse_text(&config).expect("right")))
            }
        }
    }
}

impl Infer {
    fn request(&self) -> InferRequest {
        let rows = self.rows % 6;
        let data =
            (0..rows).flat_map(|_| i32::from(self.value % 8).to_le_bytes()).collect::<Vec<_>>();
        let data_type = if self.is_wrong { DataType::Uint64 } else { DataType::Int32 };
        InferRequest {
            model_version: self.version.map(i64::from),
            inputs: vec![Tensor::new("IN", data_type, [i64::from(rows), 1], data)],
            timeout: self.timeout_us.map(|us| Duration::from_micros(us.into())),
            priority: u64::from(self.priority % 4),
            correlation_id: self
                .sequence
                .map_or(CorrelationId::None, |n| CorrelationId::Number(n.into())),
            ..InferRequest::new(name(self.model))
        }
    }
}

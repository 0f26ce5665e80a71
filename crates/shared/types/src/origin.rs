//! The senders of requests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The protocol by which a client sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// A call of a function in this process.
    #[default]
    InProcess,
    /// HTTP/1.
    Http,
    /// gRPC.
    Grpc,
}

/// The sender of a request, which waits for its answer.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A client of the server.
    Client(Protocol),
    /// Another model, which waits for the answer and does nothing else meanwhile.
    Model,
    /// An ensemble; the request is a step of it. The code that counts the request adds its compute times here.
    Step(Arc<StepTimes>),
}

impl Default for Origin {
    fn default() -> Self {
        Self::Client(Protocol::default())
    }
}

impl Origin {
    /// Returns whether a model waits for the answer, even through an ensemble.
    pub fn is_from_model(&self) -> bool {
        match self {
            Self::Client(_) => false,
            Self::Model => true,
            Self::Step(times) => times.is_from_model,
        }
    }

    /// Returns the sums of the compute times, for a step.
    pub fn step_times(&self) -> Option<&StepTimes> {
        match self {
            Self::Step(times) => Some(times),
            Self::Client(_) | Self::Model => None,
        }
    }
}

/// Total compute times of the steps of an ensemble request: the counts of the ensemble.
#[derive(Debug, Default)]
pub struct StepTimes {
    /// A model waits for the ensemble's answer.
    is_from_model: bool,
    input_ns: AtomicU64,
    infer_ns: AtomicU64,
    output_ns: AtomicU64,
}

impl StepTimes {
    /// Makes empty sums for an ensemble request of this origin.
    pub fn new(ensemble: &Origin) -> Self {
        Self { is_from_model: ensemble.is_from_model(), ..Self::default() }
    }

    /// Adds a step. Call it before sending the step's answer: the ensemble is counted right after.
    pub fn add(&self, input: Duration, infer: Duration, output: Duration) {
        let add = |sum: &AtomicU64, time: Duration| {
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        add(&self.input_ns, input);
        add(&self.infer_ns, infer);
        add(&self.output_ns, output);
    }

    /// Returns the sums of input, computation and output so far.
    pub fn sums(&self) -> [Duration; 3] {
        [&self.input_ns, &self.infer_ns, &self.output_ns]
            .map(|sum| Duration::from_nanos(sum.load(Ordering::Relaxed)))
    }
}

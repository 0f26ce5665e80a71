//! Records of requests that succeeded, and of executions.

use std::time::Duration;

/// Number of the phases of a request: the whole, the queue, and the three of computing.
pub(crate) const PHASES: usize = 5;

/// The durations of a successful request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestRecord {
    /// From the arrival to the last response.
    pub total: Duration,
    /// From the queue to the execution.
    pub queue: Duration,
    /// Preparing inputs.
    pub compute_input: Duration,
    /// The model itself.
    pub compute_infer: Duration,
    /// Taking outputs apart.
    pub compute_output: Duration,
}

impl RequestRecord {
    /// Returns the whole, the queue, and the three phases of computing.
    pub(crate) fn phases(&self) -> [Duration; PHASES] {
        [self.total, self.queue, self.compute_input, self.compute_infer, self.compute_output]
    }
}

/// A request that was answered from the response cache: nothing was executed for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheHitRecord {
    /// From the arrival to the response.
    pub total: Duration,
    /// Waiting for an equal request that was being executed.
    pub queue: Duration,
    /// Duration of the look-up.
    pub look_up: Duration,
}

/// An execution of `batch_size` items in any number of requests, of which `inferences` items succeeded.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchRecord {
    /// Items that were executed together.
    pub batch_size: u64,
    /// Items of requests that did not fail.
    pub inferences: u64,
    /// Preparing inputs.
    pub compute_input: Duration,
    /// The model itself.
    pub compute_infer: Duration,
    /// Taking outputs apart.
    pub compute_output: Duration,
}

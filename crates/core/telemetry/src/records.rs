//! What is known of a request that succeeded, and of an execution.

use std::time::Duration;

/// The phases of a request: the whole, the queue, and the three of computing.
pub(crate) const PHASES: usize = 5;

/// Where the time of one successful request went.
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
    /// The whole, the queue, and the three of computing.
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
    /// Of the look-up.
    pub look_up: Duration,
}

/// One execution: `batch_size` items at once, in however many requests, and `inferences` of them with success.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchRecord {
    /// Items that were executed together.
    pub batch_size: u64,
    /// Those of requests that did not fail.
    pub inferences: u64,
    /// Preparing inputs.
    pub compute_input: Duration,
    /// The model itself.
    pub compute_infer: Duration,
    /// Taking outputs apart.
    pub compute_output: Duration,
}

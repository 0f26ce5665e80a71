use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// How long the steps of one ensemble request computed, added up: what is counted for the ensemble (S-48).
///
/// A request that carries one is a step of an ensemble.
#[derive(Debug, Default)]
pub struct StepTimes {
    input_ns: AtomicU64,
    infer_ns: AtomicU64,
    output_ns: AtomicU64,
}

impl StepTimes {
    /// Adds one step. Call it before the step's answer is sent: the ensemble is counted right after.
    pub fn add(&self, input: Duration, infer: Duration, output: Duration) {
        let add = |sum: &AtomicU64, time: Duration| {
            sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        add(&self.input_ns, input);
        add(&self.infer_ns, infer);
        add(&self.output_ns, output);
    }

    /// Input, computation and output so far.
    pub fn sums(&self) -> [Duration; 3] {
        [&self.input_ns, &self.infer_ns, &self.output_ns]
            .map(|sum| Duration::from_nanos(sum.load(Ordering::Relaxed)))
    }
}

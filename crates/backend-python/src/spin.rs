use std::{sync::OnceLock, thread, time::Duration};

/// How long the instance thread looks for the reply before it sleeps.
///
/// Sleeping and being woken on another core costs more than a small model takes. So as long as replies
/// come quickly they are waited for awake; a model that takes longer has nothing to gain, and with one
/// core whoever is awake keeps the worker from running.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Executions in a row that a spin would have covered; negative: that it would not.
    trend: i8,
}

/// Longest time awake. See docs/adr/0006-python-workers.md for the measurement.
const BUDGET: Duration = Duration::from_micros(60);
const TREND_LIMIT: i8 = 4;

impl Spin {
    pub fn new() -> Self {
        Self { trend: 0 }
    }

    pub fn budget(&self) -> Duration {
        if self.trend >= 0 && has_cores() { BUDGET } else { Duration::ZERO }
    }

    pub fn note(&mut self, waited: Duration) {
        let step = if waited <= BUDGET { 1 } else { -1 };
        self.trend = (self.trend + step).clamp(-TREND_LIMIT, TREND_LIMIT);
    }
}

fn has_cores() -> bool {
    static HAS_CORES: OnceLock<bool> = OnceLock::new();
    *HAS_CORES.get_or_init(|| thread::available_parallelism().is_ok_and(|n| n.get() > 1))
}

//! The parts of a request's time on the server, in the whole microseconds that the reports show.
//!
//! Each average has its own count: queue and compute are not counted for responses from the cache.

use galatea_client::CountAndTime;
use galatea_perf_types::status::{ModelCounters, ServerStats};

/// Averages in microseconds, each rounded down on its own as perf_analyzer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Breakdown {
    /// Average of a whole request.
    pub total: u64,
    pub queue: u64,
    pub compute_input: u64,
    pub compute_infer: u64,
    pub compute_output: u64,
    /// Average of all compute phases.
    pub compute: u64,
    pub cache_hit: u64,
    /// Average of lookup and insertion.
    pub cache_miss: u64,
    /// Average over requests that the cache or the model answered.
    pub cache_and_compute: u64,
}

impl Breakdown {
    pub(crate) fn of_model(counters: &ModelCounters) -> Self {
        let compute = compute(counters);
        let cached = [counters.cache_hit.ns, counters.cache_miss.ns];
        let cache_and_compute = CountAndTime {
            count: compute.count.saturating_add(counters.cache_hit.count),
            ns: cached.into_iter().fold(compute.ns, u64::saturating_add),
        };
        Self {
            total: average_us(counters.success),
            queue: average_us(counters.queue),
            compute_input: average_us(counters.compute_input),
            compute_infer: average_us(counters.compute_infer),
            compute_output: average_us(counters.compute_output),
            compute: average_us(compute),
            cache_hit: average_us(counters.cache_hit),
            cache_miss: average_us(counters.cache_miss),
            cache_and_compute: average_us(cache_and_compute),
        }
    }

    /// Averages of an ensemble: its own total and cache, and the sums over its steps, with steps of steps.
    pub(crate) fn of_ensemble(stats: &ServerStats) -> Self {
        let own = Self::of_model(&stats.counters);
        let alone = Self {
            total: own.total,
            cache_hit: own.cache_hit,
            cache_miss: own.cache_miss,
            ..Self::default()
        };
        stats.composing.values().fold(alone, |sum, step| {
            sum.plus(&if step.composing.is_empty() {
                Self::of_model(&step.counters)
            } else {
                Self::of_ensemble(step)
            })
        })
    }

    fn plus(self, step: &Self) -> Self {
        Self {
            queue: self.queue.saturating_add(step.queue),
            compute: self.compute.saturating_add(step.compute),
            cache_hit: self.cache_hit.saturating_add(step.cache_hit),
            cache_miss: self.cache_miss.saturating_add(step.cache_miss),
            cache_and_compute: self.cache_and_compute.saturating_add(step.cache_and_compute),
            ..self
        }
    }

    /// Returns the time that is neither queue nor compute. It is never below zero, although the parts are rounded.
    pub(crate) fn overhead(&self) -> u64 {
        self.total.saturating_sub(self.queue).saturating_sub(self.compute)
    }

    pub(crate) fn overhead_with_cache(&self) -> u64 {
        self.total.saturating_sub(self.queue).saturating_sub(self.cache_and_compute)
    }
}

/// Returns the time of all compute phases and requests. Sums saturate, because the server sends the counters.
pub(crate) fn compute(counters: &ModelCounters) -> CountAndTime {
    let parts = [counters.compute_infer.ns, counters.compute_output.ns];
    let ns = parts.into_iter().fold(counters.compute_input.ns, u64::saturating_add);
    CountAndTime { ns, ..counters.compute_input }
}

/// Returns the average in microseconds; zero without a count.
pub(crate) fn average_us(of: CountAndTime) -> u64 {
    of.ns.checked_div(of.count.saturating_mul(1000)).unwrap_or(0)
}

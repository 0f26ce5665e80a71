//! Counters of a model version since it was loaded, from its statistics or from the metrics page.

use std::collections::BTreeMap;

use galatea_client::{CountAndTime, ModelStatistics};

/// Most batch sizes that are kept for a model.
const MOST_BATCH_SIZES: usize = 1024;

/// Counters since a load; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    pub success: u64,
    pub fail: u64,
    pub inferences: u64,
    pub executions: u64,
    pub request_ns: u64,
    pub queue_ns: u64,
    pub input_ns: u64,
    pub infer_ns: u64,
    pub output_ns: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Time in which instances were busy. Unknown from metrics: there each request of a batch counts.
    pub busy_ns: Option<u64>,
    /// Executions by batch size.
    pub batches: BTreeMap<u64, u64>,
}

impl From<&ModelStatistics> for Counters {
    fn from(statistics: &ModelStatistics) -> Self {
        let batches = statistics.batches.iter().take(MOST_BATCH_SIZES);
        let ns = |time: CountAndTime| time.ns;
        let busy = batches.clone().map(|batch| {
            let parts = [batch.compute_input, batch.compute_infer, batch.compute_output].map(ns);
            parts.into_iter().fold(0, u64::saturating_add)
        });
        Self {
            success: statistics.success.count,
            fail: statistics.fail.count,
            inferences: statistics.inference_count,
            executions: statistics.execution_count,
            request_ns: statistics.success.ns,
            queue_ns: statistics.queue.ns,
            input_ns: statistics.compute_input.ns,
            infer_ns: statistics.compute_infer.ns,
            output_ns: statistics.compute_output.ns,
            cache_hits: statistics.cache_hit.count,
            cache_misses: statistics.cache_miss.count,
            busy_ns: Some(busy.fold(0, u64::saturating_add)),
            batches: batches.map(|batch| (batch.batch_size, batch.compute_infer.count)).collect(),
        }
    }
}

impl Counters {
    /// Returns the differences since `earlier`. `None` if a counter went back: the model was loaded again, and the part of its
    /// counts in this interval is unknown.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let batch = |(&size, &count): (&u64, &u64)| {
            let before = earlier.batches.get(&size).copied().unwrap_or_default();
            Some((size, count.checked_sub(before)?))
        };
        Some(Self {
            success: self.success.checked_sub(earlier.success)?,
            fail: self.fail.checked_sub(earlier.fail)?,
            inferences: self.inferences.checked_sub(earlier.inferences)?,
            executions: self.executions.checked_sub(earlier.executions)?,
            request_ns: self.request_ns.checked_sub(earlier.request_ns)?,
            queue_ns: self.queue_ns.checked_sub(earlier.queue_ns)?,
            input_ns: self.input_ns.checked_sub(earlier.input_ns)?,
            infer_ns: self.infer_ns.checked_sub(earlier.infer_ns)?,
            output_ns: self.output_ns.checked_sub(earlier.output_ns)?,
            cache_hits: self.cache_hits.checked_sub(earlier.cache_hits)?,
            cache_misses: self.cache_misses.checked_sub(earlier.cache_misses)?,
            busy_ns: match (self.busy_ns, earlier.busy_ns) {
                (Some(now), Some(before)) => Some(now.checked_sub(before)?),
                _ => None,
            },
            batches: self.batches.iter().map(batch).collect::<Option<_>>()?,
        })
    }

    /// Returns the mean batch size. Batch sizes count all executions, inferences only requests that succeeded. The metrics page
    /// has only the latter, so an interval with failures has no batch size.
    pub fn batch_size(&self) -> Option<f64> {
        let mean = |items: u64, executions: u64| {
            (executions > 0).then(|| items as f64 / executions as f64)
        };
        if self.batches.values().any(|&count| count > 0) {
            let items = self.batches.iter().map(|(size, count)| size.saturating_mul(*count));
            let executions = self.batches.values().copied().fold(0, u64::saturating_add);
            return mean(items.fold(0, u64::saturating_add), executions);
        }
        mean(self.inferences, self.executions).filter(|_| self.fail == 0)
    }

    pub fn compute_ns(&self) -> u64 {
        self.input_ns.saturating_add(self.infer_ns).saturating_add(self.output_ns)
    }
}

#[cfg(test)]
mod tests {
    use galatea_client::BatchStatistics;

    use super::*;

    fn statistics(success: u64, batches: &[(u64, u64)]) -> Counters {
        let batch = |&(batch_size, count): &(u64, u64)| BatchStatistics {
            batch_size,
            compute_infer: CountAndTime { count, ns: count * 10 },
            ..Default::default()
        };
        (&ModelStatistics {
            success: CountAndTime { count: success, ns: success * 100 },
            batches: batches.iter().map(batch).collect(),
            ..Default::default()
        })
            .into()
    }

    #[test]
    fn differences_cover_one_interval() {
        let earlier = statistics(10, &[(1, 10)]);
        let recent = statistics(16, &[(1, 12), (4, 1)]).since(&earlier).expect("later");
        assert_eq!((recent.success, recent.request_ns, recent.busy_ns), (6, 600, Some(30)));
        assert_eq!(recent.batches, [(1, 2), (4, 1)].into());
    }

    #[test]
    fn failed_executions_do_not_lower_the_batch_size_below_one() {
        let failing = Counters { inferences: 69, executions: 100, fail: 31, ..Counters::default() };
        assert_eq!(failing.batch_size(), None, "the page of metrics cannot tell");
        let known = Counters { batches: [(1, 90), (2, 10)].into(), ..failing.clone() };
        assert_eq!(known.batch_size(), Some(1.1));
        let well = Counters { inferences: 200, fail: 0, ..failing };
        assert_eq!(well.batch_size(), Some(2.0));
        assert_eq!(Counters::default().batch_size(), None);
    }

    #[test]
    fn a_decreasing_counter_gives_no_difference() {
        let earlier = statistics(10, &[(1, 10)]);
        assert_eq!(statistics(9, &[(1, 10)]).since(&earlier), None);
        assert_eq!(statistics(11, &[(1, 9)]).since(&earlier), None);
        let huge = statistics(1, &[(1, 1), (2, 2)]);
        assert_eq!(
            Counters { success: u64::MAX, ..huge.clone() }.since(&huge).map(|c| c.fail),
            Some(0)
        );
    }
}

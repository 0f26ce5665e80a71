//! Decides when to stop measuring a point.

use galatea_perf_types::{
    failure::Result,
    record::Nanos,
    status::{Instability, PerfStatus, Trial},
};

/// Number of windows in a row that must agree.
pub(super) const STABLE_WINDOWS: usize = 3;

/// Throughput and latency of the windows of a point, oldest first. A window that failed has no throughput and an infinite
/// latency.
#[derive(Debug, Default)]
pub(super) struct History {
    windows: Vec<(f64, Nanos)>,
}

impl History {
    pub(super) fn add(&mut self, window: &Result<PerfStatus>) {
        self.windows.push(match window {
            Ok(status) => (status.client.infer_per_sec, status.stabilizing_latency_ns),
            Err(_) => (0.0, Nanos::MAX),
        });
    }

    fn last(&self) -> Option<&[(f64, Nanos)]> {
        self.windows.len().checked_sub(STABLE_WINDOWS).and_then(|first| self.windows.get(first..))
    }

    /// Returns true if the last windows differ by no more than `spread`, in throughput and in latency.
    pub(super) fn is_stable(&self, spread: f64) -> bool {
        let latencies =
            |windows: &[(f64, Nanos)]| within(spread, windows.iter().map(|(_, ns)| *ns as f64));
        self.has_stable_throughput(spread) && self.last().is_some_and(latencies)
    }

    pub(super) fn has_stable_throughput(&self, spread: f64) -> bool {
        self.last().is_some_and(|windows| {
            windows.iter().all(|(rate, _)| *rate != 0.0)
                && within(spread, windows.iter().map(|(rate, _)| *rate))
        })
    }

    /// Returns true if one of the last windows was over the limit, so that more of them would not help.
    pub(super) fn is_over(&self, limit_ms: u64) -> bool {
        let limit = limit_ms.saturating_mul(1_000_000);
        self.last().is_some_and(|windows| windows.iter().any(|(_, ns)| *ns >= limit))
    }

    /// Returns the reason why the point was given up. `spread` and `limit_ms` are those that decided.
    pub(super) fn instability(&self, spread: f64, limit_ms: Option<u64>) -> Instability {
        let last = self.last().filter(|windows| windows.iter().all(is_measured));
        let apart = |of: fn(&(f64, Nanos)) -> f64| {
            last.map(|windows| ratio(windows.iter().map(of)) - 1.0)
                .filter(|apart| apart.is_finite())
        };
        Instability {
            allowed: spread,
            needed: STABLE_WINDOWS,
            throughput: apart(|(rate, _)| *rate),
            latency: apart(|(_, ns)| *ns as f64),
            limit_ms: limit_ms.filter(|limit| self.is_over(*limit)),
            trials: self.windows.iter().map(trial).collect(),
        }
    }
}

fn is_measured((rate, ns): &(f64, Nanos)) -> bool {
    *rate > 0.0 && *ns != Nanos::MAX
}

fn trial(window: &(f64, Nanos)) -> Trial {
    let (infer_per_sec, ns) = *window;
    Trial { infer_per_sec, latency_ns: Some(ns).filter(|ns| *ns != Nanos::MAX) }
}

fn within(spread: f64, values: impl Iterator<Item = f64> + Clone) -> bool {
    ratio(values) <= 1.0 + spread
}

/// Returns the largest value over the smallest.
fn ratio(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = values.clone().fold(f64::MIN, f64::max);
    let min = values.fold(f64::MAX, f64::min);
    max / min
}

#[cfg(test)]
mod tests {
    use galatea_perf_types::failure::Failure;

    use super::*;

    fn history(windows: &[(f64, Nanos)]) -> History {
        History { windows: windows.to_vec() }
    }

    #[test]
    fn stability_needs_the_last_three_windows() {
        assert!(!history(&[(10.0, 5), (10.0, 5)]).is_stable(0.1));
        assert!(history(&[(1.0, 90), (10.0, 50), (10.5, 52), (11.0, 55)]).is_stable(0.1));
        assert!(!history(&[(10.0, 50), (10.5, 52), (11.5, 55)]).is_stable(0.1));
    }

    #[test]
    fn stability_needs_latency_and_throughput() {
        let history = history(&[(10.0, 50), (10.0, 50), (10.0, 56)]);
        assert!(!history.is_stable(0.1));
        assert!(history.has_stable_throughput(0.1));
    }

    #[test]
    fn a_window_without_requests_is_never_stable() {
        let mut history = history(&[(10.0, 50), (10.0, 50)]);
        history.add(&Err(Failure::generic("none")));
        assert!(!history.is_stable(1e9) && !history.has_stable_throughput(1e9));
        assert!(!super::History { windows: vec![(0.0, 1); 3] }.has_stable_throughput(0.1));
    }

    #[test]
    fn the_instability_reason_lists_every_window() {
        let mut history = history(&[(1.0, 9), (10.0, 50), (12.0, 50), (10.0, 60)]);
        let why = history.instability(0.1, Some(1));
        let near = |apart: Option<f64>| apart.is_some_and(|apart| (apart - 0.2).abs() < 1e-9);
        assert!(near(why.throughput) && near(why.latency), "{why:?}");
        assert_eq!((why.allowed, why.limit_ms, why.trials.len()), (0.1, None, 4));
        assert_eq!(why.trials[0], Trial { infer_per_sec: 1.0, latency_ns: Some(9) });
        assert_eq!(history.instability(0.1, Some(0)).limit_ms, Some(0));
        history.add(&Err(Failure::generic("none")));
        let why = history.instability(0.1, None);
        assert_eq!((why.throughput, why.latency), (None, None));
        assert_eq!(why.trials[4], Trial { infer_per_sec: 0.0, latency_ns: None });
        assert_eq!(super::History::default().instability(0.1, None).throughput, None);
    }

    #[test]
    fn the_latency_limit_is_checked_in_three_windows() {
        let ms = 1_000_000;
        assert!(!history(&[(1.0, 9 * ms), (1.0, 9 * ms)]).is_over(5));
        assert!(history(&[(1.0, 4 * ms), (1.0, 5 * ms), (1.0, 4 * ms)]).is_over(5));
        assert!(!history(&[(1.0, 9 * ms), (1.0, 4 * ms), (1.0, 4 * ms), (1.0, 4 * ms)]).is_over(5));
    }
}

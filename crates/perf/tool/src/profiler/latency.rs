//! Statistics of a list of latencies.

use std::collections::BTreeMap;

use galatea_perf_types::{percentile::percentile, record::Nanos};

const REPORTED_PERCENTILES: [u8; 4] = [50, 90, 95, 99];

pub(super) const ONE_REQUEST_WARNING: &str = "WARNING: Pass contained only one request, so sample latency standard deviation will be infinity (UINT64_MAX).";

/// Figures of at least one latency.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LatencyFigures {
    pub avg_ns: Nanos,
    /// Standard deviation of the sample, in whole microseconds; `u64::MAX` for a single latency.
    pub std_us: u64,
    pub percentiles_ns: BTreeMap<u8, Nanos>,
}

impl LatencyFigures {
    /// Returns the figures; `None` without latencies. `sorted` ascends; `reported` is a percentile to add to the usual ones.
    pub(super) fn of(sorted: &[Nanos], reported: Option<u8>) -> Option<Self> {
        let avg_ns = average(sorted)?;
        let percentiles_ns = REPORTED_PERCENTILES
            .into_iter()
            .chain(reported)
            .filter_map(|percent| Some((percent, percentile(sorted, f64::from(percent))?)))
            .collect();
        Some(Self { avg_ns, std_us: deviation_us(sorted, avg_ns), percentiles_ns })
    }
}

fn average(latencies: &[Nanos]) -> Option<Nanos> {
    let sum: u128 = latencies.iter().map(|ns| u128::from(*ns)).sum();
    Nanos::try_from(sum.checked_div(latencies.len() as u128)?).ok()
}

/// Divides integers before the root and truncates after it, as in perf_analyzer.
fn deviation_us(latencies: &[Nanos], avg_ns: Nanos) -> u64 {
    let squares: u128 = latencies.iter().map(|ns| u128::from(ns.abs_diff(avg_ns)).pow(2)).sum();
    let others = latencies.len().saturating_sub(1) as u128;
    squares.checked_div(others).map_or(u64::MAX, |variance| (variance as f64).sqrt() as u64 / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_latencies_there_is_no_summary() {
        assert_eq!(LatencyFigures::of(&[], None), None);
    }

    #[test]
    fn one_latency_has_no_deviation() {
        let figures = LatencyFigures::of(&[7_000], Some(42)).unwrap();
        assert_eq!((figures.avg_ns, figures.std_us), (7_000, u64::MAX));
        assert_eq!(
            figures.percentiles_ns.into_iter().collect::<Vec<_>>(),
            [42, 50, 90, 95, 99].map(|percent| (percent, 7_000))
        );
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        // Mean 2 ms, squares 1 + 0 + 1 over 2.
        let figures = LatencyFigures::of(&[1_000_000, 2_000_000, 3_000_000], None).unwrap();
        assert_eq!((figures.avg_ns, figures.std_us), (2_000_000, 1_000));
    }

    #[test]
    fn long_latencies_do_not_overflow() {
        let hour = 3_600_000_000_000;
        let latencies: Vec<Nanos> =
            (0..1000).map(|index| if index < 500 { 0 } else { hour }).collect();
        let figures = LatencyFigures::of(&latencies, None).unwrap();
        assert_eq!(figures.avg_ns, hour / 2);
        assert!(figures.std_us.abs_diff(1_800_900_675) < 2, "{}", figures.std_us);
    }
}

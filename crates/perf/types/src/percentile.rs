//! The percentile that all reports show.

use crate::record::Nanos;

/// Returns the value at the index nearest to `percent`, halves up, as perf_analyzer does; `None` without values. `sorted`
/// ascends.
pub fn percentile(sorted: &[Nanos], percent: f64) -> Option<Nanos> {
    let last = sorted.len().checked_sub(1)?;
    let index = (percent / 100.0 * last as f64 + 0.5) as usize;
    sorted.get(index.min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_index_is_rounded_half_up() {
        let sorted: Vec<Nanos> = (0..=10).collect();
        let at = |percent| percentile(&sorted, percent);
        let found = [0.0, 4.0, 5.0, 14.0, 15.0, 95.0, 99.0, 100.0].map(at);
        assert_eq!(found, [0, 0, 1, 1, 2, 10, 10, 10].map(Some));
        assert_eq!(percentile(&[], 50.0), None);
    }
}

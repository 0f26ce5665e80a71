//! Quantiles of durations in microseconds, from counts by size.

/// Number of bits of the steps between two powers of two.
const STEP_BITS: u32 = 5;
/// Longer durations, over an hour, count as this one.
const LONGEST: u64 = u32::MAX as u64;
const SIZES: usize = position(LONGEST) + 1;

/// Counts of observed durations. Durations below 64 us are kept exactly, longer ones to the next of 32 steps between two powers
/// of two. A quantile is at most 1/64 of its value away from the exact one.
///
/// It takes no memory until something is observed.
#[derive(Clone, Debug, Default)]
pub(super) struct SizeCounts(Vec<u32>);

impl SizeCounts {
    pub fn observe(&mut self, micros: u64) {
        if self.0.is_empty() {
            self.0.resize(SIZES, 0);
        }
        if let Some(count) = self.0.get_mut(position(micros)) {
            *count = count.saturating_add(1);
        }
    }

    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

/// Returns, for each of `quantiles`, the value below which that share of all observations in `counts` lies. `None` when there are
/// no observations.
pub(super) fn quantiles(counts: &[SizeCounts], quantiles: &[f64]) -> Vec<Option<u64>> {
    let sums = sums(counts);
    let total: u64 = sums.iter().sum();
    quantiles.iter().map(|&quantile| value_at(&sums, rank(quantile, total))).collect()
}

/// Returns the number of observations in `counts`, and their mean, as exact as a quantile; 0 when there are none.
pub(super) fn count_and_mean(counts: &[SizeCounts]) -> (u64, f64) {
    let sums = sums(counts);
    let total: u64 = sums.iter().sum();
    let weighted = sums.iter().enumerate().filter(|(_, count)| **count > 0);
    let sum: f64 = weighted.map(|(at, count)| middle(at) as f64 * *count as f64).sum();
    (total, if total == 0 { 0.0 } else { sum / total as f64 })
}

fn sums(counts: &[SizeCounts]) -> [u64; SIZES] {
    let mut sums = [0_u64; SIZES];
    for counts in counts {
        for (sum, count) in sums.iter_mut().zip(&counts.0) {
            *sum += u64::from(*count);
        }
    }
    sums
}

/// Returns the rank of a quantile among `total` observations in ascending order, from 1; 0 when there are none.
fn rank(quantile: f64, total: u64) -> u64 {
    // A negative number and a NaN become 0.
    let rank = (quantile * total as f64).ceil() as u64;
    rank.clamp(total.min(1), total)
}

fn value_at(sums: &[u64; SIZES], rank: u64) -> Option<u64> {
    let mut below = 0;
    let found = sums.iter().position(|count| {
        below += count;
        rank > 0 && below >= rank
    });
    found.map(middle)
}

const fn position(micros: u64) -> usize {
    let micros = if micros > LONGEST { LONGEST } else { micros };
    let bits = u64::BITS - micros.leading_zeros();
    let shift = bits.saturating_sub(STEP_BITS + 1);
    ((shift as usize) << STEP_BITS) + (micros >> shift) as usize
}

/// Returns the middle of the values that share a position.
fn middle(position: usize) -> u64 {
    let steps = 1 << STEP_BITS;
    if position < 2 * steps {
        return position as u64;
    }
    let shift = position / steps - 1;
    let first = (position % steps + steps) << shift;
    (first + ((1 << shift) - 1) / 2) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(mut values: Vec<u64>, quantile: f64) -> u64 {
        values.sort_unstable();
        values[rank(quantile, values.len() as u64) as usize - 1]
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_its_error_bound(
            values in prop::collection::vec(prop_oneof![0..200_u64, 0..100_000_u64, 0..LONGEST], 1..400),
            quantile in 0.0..=1.0_f64,
            parts in 1..6_usize,
        ) {
            let mut counts = vec![SizeCounts::default(); parts];
            for (n, value) in values.iter().enumerate() {
                counts[n % parts].observe(*value);
            }
            let found = quantiles(&counts, &[quantile])[0].expect("observed");
            let exact = exact(values, quantile);
            prop_assert!(found.abs_diff(exact) <= exact / 64, "{found} for {exact}");
        }

        #[test]
        fn bucket_positions_ascend_with_values(a in 0..=LONGEST, b in 0..=LONGEST) {
            prop_assert!(position(a.min(b)) <= position(a.max(b)) && position(a) < SIZES);
        }
    }

    #[test]
    fn short_durations_are_exact_and_long_ones_bounded() {
        for micros in 0..64 {
            assert_eq!(middle(position(micros)), micros);
        }
        assert_eq!(position(u64::MAX), SIZES - 1);
        assert!(LONGEST - middle(SIZES - 1) <= LONGEST / 64);
    }

    #[test]
    fn no_observations_give_no_quantiles() {
        assert_eq!(quantiles(&[SizeCounts::default()], &[0.5, 1.0]), [None, None]);
    }

    #[test]
    fn the_mean_covers_all_parts() {
        let mut counts = [SizeCounts::default(), SizeCounts::default(), SizeCounts::default()];
        assert_eq!(count_and_mean(&counts), (0, 0.0));
        counts[0].observe(10);
        counts[2].observe(20);
        counts[2].observe(60);
        assert_eq!(count_and_mean(&counts), (3, 30.0));
    }

    #[test]
    fn quantiles_out_of_range_are_clamped() {
        let mut counts = SizeCounts::default();
        (1..=10).for_each(|value| counts.observe(value));
        let found = quantiles(&[counts], &[-1.0, 0.0, 0.5, 1.0, 7.0, f64::NAN]);
        assert_eq!(found, [1, 1, 5, 10, 10, 1].map(Some));
    }
}

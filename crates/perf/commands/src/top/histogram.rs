//! Quantiles from the buckets of a histogram.

/// Most buckets that are kept.
const MOST_BUCKETS: usize = 1000;

/// Number of values at or below each bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// Bounds and counts. A correct server sends both in ascending order.
    buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Adds a count to the bucket of this bound.
    pub fn add(&mut self, bound: f64, count: u64) {
        if bound.is_nan() {
            return;
        }
        let at = self.buckets.partition_point(|&(found, _)| found < bound);
        let has_room = self.buckets.len() < MOST_BUCKETS;
        match self.buckets.get_mut(at) {
            Some((found, sum)) if *found == bound => *sum = sum.saturating_add(count),
            _ if has_room => self.buckets.insert(at, (bound, count)),
            _ => {}
        }
    }

    /// Returns the difference since `earlier`; `None` if the buckets differ, or a count went back.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        if self.buckets.len() != earlier.buckets.len() {
            return None;
        }
        let pairs = self.buckets.iter().zip(&earlier.buckets);
        let difference = |(now, before): (&(f64, u64), &(f64, u64))| match now.0 == before.0 {
            true => Some((now.0, now.1.checked_sub(before.1)?)),
            false => None,
        };
        Some(Self { buckets: pairs.map(difference).collect::<Option<_>>()? })
    }

    /// Returns the value below which this part of all values lies, assuming an even spread within a bucket. Beyond the last bound
    /// it returns that bound.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let total = self.buckets.last().map(|&(_, count)| count).filter(|&count| count > 0)?;
        let rank = part * total as f64;
        let at = self.buckets.iter().position(|&(_, count)| count as f64 >= rank)?;
        let (bound, count) = self.buckets[at];
        let (lower, below) = match at.checked_sub(1) {
            Some(before) => self.buckets[before],
            None => (0.0, 0),
        };
        if bound.is_infinite() {
            return (at > 0).then_some(lower);
        }
        let within = count.saturating_sub(below).max(1) as f64;
        Some(lower + (bound - lower) * ((rank - below as f64) / within).clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, u64)]) -> Histogram {
        let mut made = Histogram::default();
        buckets.iter().for_each(|&(bound, count)| made.add(bound, count));
        made
    }

    #[test]
    fn quantiles_are_interpolated_within_buckets() {
        let made = histogram(&[(f64::INFINITY, 100), (10.0, 50), (20.0, 90)]);
        assert_eq!(made.quantile(0.25), Some(5.0));
        assert_eq!(made.quantile(0.5), Some(10.0));
        assert_eq!(made.quantile(0.7), Some(15.0));
        assert_eq!(made.quantile(0.99), Some(20.0));
        assert_eq!(histogram(&[]).quantile(0.5), None);
        assert_eq!(histogram(&[(1.0, 0)]).quantile(0.5), None);
        assert_eq!(histogram(&[(f64::INFINITY, 3)]).quantile(0.5), None);
    }

    #[test]
    fn differences_need_the_same_buckets() {
        let (earlier, now) = (histogram(&[(1.0, 5), (2.0, 9)]), histogram(&[(1.0, 5), (2.0, 19)]));
        assert_eq!(now.since(&earlier).and_then(|recent| recent.quantile(0.5)), Some(1.5));
        assert_eq!(earlier.since(&now), None);
        assert_eq!(now.since(&histogram(&[(1.0, 5)])), None);
        assert_eq!(now.since(&histogram(&[(1.0, 5), (3.0, 9)])), None);
    }

    #[test]
    fn decreasing_counts_and_invalid_bounds_cause_no_panic() {
        let odd = histogram(&[(f64::NAN, 3), (-1.0, 9), (2.0, 1), (3.0, u64::MAX), (3.0, 7)]);
        assert!(odd.quantile(0.99).is_some_and(f64::is_finite));
        let many: Vec<(f64, u64)> = (0..2000).map(|at| (f64::from(at), 1)).collect();
        assert_eq!(histogram(&many).buckets.len(), MOST_BUCKETS);
    }
}

//! The choice of the requests that are traced.

/// Chooses every nth request until its count is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampler {
    rate: u32,
    /// The number that is still chosen; negative: all.
    left: i32,
    /// Requests since the last one that was chosen.
    since_chosen: u32,
    /// Chosen requests whose trace is not finished.
    open: u64,
}

impl Sampler {
    pub fn new(rate: u32, count: i32) -> Self {
        Self { rate, left: count, since_chosen: 0, open: 0 }
    }

    /// Counts a request. Returns whether it is chosen.
    pub fn choose(&mut self) -> bool {
        if self.left == 0 || self.rate == 0 {
            return false;
        }
        self.since_chosen += 1;
        if self.since_chosen < self.rate {
            return false;
        }
        self.since_chosen = 0;
        self.left -= i32::from(self.left > 0);
        self.open += 1;
        true
    }

    /// Returns how many more are chosen; negative: all.
    pub fn left(&self) -> i32 {
        self.left
    }

    /// Counts a finished trace. Returns whether it is the last one of a count: Triton then writes its file at once, though only
    /// where every request was traced.
    pub fn finish(&mut self) -> bool {
        self.open = self.open.saturating_sub(1);
        self.left == 0 && self.open == 0 && self.rate == 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chosen(rate: u32, count: i32, requests: u32) -> Vec<u32> {
        let mut sampler = Sampler::new(rate, count);
        (1..=requests).filter(|_| sampler.choose()).collect()
    }

    #[test]
    fn rate_three_takes_the_third_and_the_sixth() {
        assert_eq!(chosen(3, -1, 8), [3, 6]);
        assert_eq!(chosen(3, 1, 8), [3]);
        assert!(chosen(0, -1, 8).is_empty() && chosen(1, 0, 8).is_empty());
    }

    #[test]
    fn the_last_trace_of_a_count_is_known() {
        let mut every = Sampler::new(1, 2);
        assert!(every.choose() && every.choose());
        assert_eq!([every.finish(), every.finish()], [false, true]);
        let mut second = Sampler::new(2, 1);
        assert!(!second.choose() && second.choose() && !second.finish());
    }

    proptest! {
        #[test]
        fn every_nth_is_chosen_up_to_the_count(rate in 1u32..9, count in -1i32..9, requests in 0u32..99) {
            let most = u32::try_from(count).unwrap_or(u32::MAX).min(requests / rate);
            let expected: Vec<u32> = (1..=most).map(|n| n * rate).collect();
            prop_assert_eq!(chosen(rate, count, requests), expected);
        }
    }
}

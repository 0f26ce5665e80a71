//! From values to pixels, with ticks at round values.

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Linear,
    Log,
}

/// A range of values laid over a range of pixels. Every position it gives is finite and inside.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub kind: Kind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Zero to something round above the largest value.
    pub fn from_zero(values: &[f64]) -> Self {
        let high = largest(values);
        Self::linear(0.0, if high > 0.0 { high * 1.05 } else { 1.0 })
    }

    /// Linear, or logarithmic where the largest value is more than `ratio` times the smallest. Zero is left out where
    /// all values are far from it.
    pub fn fitting(values: &[f64], ratio: f64) -> Self {
        let (low, high) = (smallest_positive(values), largest(values));
        if low > 0.0 && high / low > ratio {
            return Self::log(low * 0.93, high * 1.07);
        }
        if values.iter().any(|v| *v <= 0.0) || low < 0.6 * high || low == high {
            return Self::from_zero(values);
        }
        let space = (high - low) * 0.1;
        Self::linear(low - space, high + space)
    }

    /// Of loads, which are points and not round: just around them, logarithmic where each is a multiple of the one
    /// before rather than a step from it. Ascending.
    pub fn of_loads(loads: &[f64]) -> Self {
        let (low, high) = (smallest_positive(loads), largest(loads));
        let gap = |pair: Option<&[f64]>| pair.and_then(|p| Some(p.last()? - p.first()?));
        let grows =
            gap(loads.windows(2).next_back()) > gap(loads.windows(2).next()).map(|g| g * 2.5);
        if loads.iter().all(|load| *load == high) {
            return Self {
                kind: Kind::Linear,
                low: 0.0,
                high: (high * 2.0).max(1.0),
                from: 0.0,
                to: 1.0,
            };
        }
        if grows && loads.iter().all(|load| *load > 0.0) {
            let space = (high / low).powf(0.06);
            return Self {
                kind: Kind::Log,
                low: low / space,
                high: high * space,
                from: 0.0,
                to: 1.0,
            };
        }
        let low = loads.iter().copied().fold(high, f64::min);
        let space = (high - low) * 0.06;
        Self { kind: Kind::Linear, low: low - space, high: high + space, from: 0.0, to: 1.0 }
    }

    /// Both ends included, for a share.
    pub fn share() -> Self {
        Self { kind: Kind::Linear, low: 0.0, high: 1.0, from: 0.0, to: 1.0 }
    }

    fn linear(low: f64, high: f64) -> Self {
        let step = step(high - low, 6.0);
        let low = (low / step).floor() * step;
        let high = (high / step).ceil() * step;
        Self { kind: Kind::Linear, low, high, from: 0.0, to: 1.0 }
    }

    fn log(low: f64, high: f64) -> Self {
        let low = rounds(low.log10().floor() as i32, 1).rfind(|v| *v <= low).unwrap_or(low);
        let high = rounds(high.log10().floor() as i32, 2).find(|v| *v >= high).unwrap_or(high);
        Self { kind: Kind::Log, low, high, from: 0.0, to: 1.0 }
    }

    pub fn over(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    pub fn position(&self, value: f64) -> f64 {
        let value = if value.is_finite() { value.clamp(self.low, self.high) } else { self.low };
        let share = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values inside, about as many as requested.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        match self.kind {
            Kind::Linear => self.linear_ticks(about),
            Kind::Log => self.log_ticks(about),
        }
    }

    fn linear_ticks(&self, about: usize) -> Vec<f64> {
        let step = step(self.high - self.low, about.max(1) as f64);
        let first = (self.low / step - 1e-6).ceil();
        let count = (self.high / step + 1e-6).floor() - first;
        // Multiples of the step, not sums: sums would drift away from round values.
        (0..=count as usize).map(|i| (first + i as f64) * step).collect()
    }

    fn log_ticks(&self, about: usize) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let decades = (self.high.log10().ceil() as i32 - first).max(1) as usize;
        let inside = |v: &f64| (self.low * 0.999..=self.high * 1.001).contains(v);
        let all: Vec<f64> = rounds(first, decades).filter(inside).collect();
        if all.len() <= about + about / 2 {
            return all;
        }
        let every = (decades / about.max(1) + 1) as i32;
        (0..=decades as i32)
            .filter(|d| d % every == 0)
            .map(|d| power(first + d))
            .filter(inside)
            .collect()
    }
}

/// 1, 2 and 5 in each of some decades.
fn rounds(first: i32, decades: usize) -> impl DoubleEndedIterator<Item = f64> {
    (0..=decades as i32).flat_map(move |d| [1.0, 2.0, 5.0].map(|m| m * power(first + d)))
}

fn power(exponent: i32) -> f64 {
    // Exact powers, which a negative exponent would not give.
    if exponent < 0 { 1.0 / 10f64.powi(-exponent) } else { 10f64.powi(exponent) }
}

/// The round step of which about `count` make up the range.
fn step(range: f64, count: f64) -> f64 {
    let wanted = (range / count).max(1e-300);
    let first = wanted.log10().floor() as i32;
    rounds(first, 1).find(|v| *v >= wanted * 0.75).unwrap_or(wanted)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn smallest_positive(values: &[f64]) -> f64 {
    let smallest = values.iter().copied().filter(|v| *v > 0.0).fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Scale::from_zero(&[930.0]).ticks(5), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(Scale::from_zero(&[0.29]).ticks(4), [0.0, 0.1, 0.2, 0.30000000000000004]);
        assert_eq!(
            Scale::fitting(&[1.5, 480.0], 20.0).ticks(7),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        );
        assert_eq!(
            Scale::fitting(&[1.5, 400_000.0], 20.0).ticks(7),
            [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]
        );
        assert!((4..=7).contains(&Scale::fitting(&[1e-9, 1e18], 20.0).ticks(6).len()));
    }

    #[test]
    fn the_kind_follows_the_spread() {
        assert_eq!(Scale::fitting(&[1.0, 19.0], 20.0).kind, Kind::Linear);
        assert_eq!(Scale::fitting(&[1.0, 21.0], 20.0).kind, Kind::Log);
        let narrow = Scale::fitting(&[100.0, 104.0], 20.0).over(0.0, 100.0);
        assert!(narrow.position(100.0) < 25.0 && narrow.position(104.0) > 75.0);
        assert_eq!(Scale::fitting(&[100.0], 20.0).over(0.0, 120.0).position(0.0), 0.0);
    }

    #[test]
    fn positions_are_finite_whatever_comes() {
        let values = [0.0, 1e-300, 1.0, 1e18, f64::NAN, f64::INFINITY, -5.0];
        let domains: [&[f64]; 6] = [&[], &[0.0], &[1e-300], &[1e18], &[0.0, 1e18], &[1e-9, 1e18]];
        for domain in domains {
            for scale in [Scale::from_zero(domain), Scale::fitting(domain, 20.0)] {
                let scale = scale.over(10.0, 90.0);
                assert!(values.iter().all(|v| (10.0..=90.0).contains(&scale.position(*v))));
                assert!(!scale.ticks(6).is_empty() && scale.ticks(6).len() < 20, "{scale:?}");
            }
        }
    }

    #[test]
    fn loads_are_laid_out_as_they_were_chosen() {
        assert_eq!(Scale::of_loads(&[1.0, 2.0, 4.0, 8.0]).kind, Kind::Log);
        assert_eq!(Scale::of_loads(&[1.0, 10.0, 20.0, 30.0]).kind, Kind::Linear);
        assert_eq!(Scale::of_loads(&[0.0, 1.0, 10.0]).kind, Kind::Linear);
        for loads in [&[][..], &[0.0], &[7.0], &[0.0, 0.0], &[3.0, 5.0]] {
            let scale = Scale::of_loads(loads).over(0.0, 100.0);
            assert!(loads.iter().all(|load| (0.0..=100.0).contains(&scale.position(*load))));
        }
    }

    #[test]
    fn logarithms_are_even() {
        let scale = Scale::fitting(&[1.1, 900.0], 20.0).over(0.0, 300.0);
        assert!((scale.position(10.0) - 100.0).abs() < 1e-9);
        assert!((scale.position(100.0) - 200.0).abs() < 1e-9);
    }
}

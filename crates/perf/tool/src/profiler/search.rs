//! Chooses the points to measure.

use galatea_perf_types::{
    failure::{Exit, Failure, Result},
    load::LoadStart,
    settings::{Range, Search},
    status::LoadPoint,
};

use super::{Run, point::PointVerdict};

/// Values of a load that can be searched over.
pub(super) trait Level: Copy + PartialOrd {
    const ZERO: Self;
    fn plus(self, step: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Returns the middle, with the division of the type.
    fn middle(self, other: Self) -> Self;
    /// Warms the server up, and starts the load.
    fn start(self, run: &mut Run<'_>) -> Result<()>;
    fn point(self) -> LoadPoint;
}

impl Level for u64 {
    const ZERO: Self = 0;

    fn plus(self, step: Self) -> Self {
        self.saturating_add(step)
    }

    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }

    fn middle(self, other: Self) -> Self {
        self.midpoint(other)
    }

    fn start(self, run: &mut Run<'_>) -> Result<()> {
        let warmup = run.parts.settings.warmup_request_count;
        if warmup > 0 {
            if self > warmup {
                run.warn(
                    "WARNING: The number of concurrent requests exceeds the warmup request count. Adjusting warmup concurrency to match the warmup request count.",
                );
            }
            let concurrency = self.min(warmup);
            run.out(&format!("Request concurrency: {concurrency}\n"));
            run.warm_up(LoadStart::Concurrency(concurrency))?;
        }
        run.start_load(LoadStart::Concurrency(self))?;
        run.out(&format!("Request concurrency: {self}\n"));
        Ok(())
    }

    fn point(self) -> LoadPoint {
        LoadPoint::Concurrency(self)
    }
}

impl Level for f64 {
    const ZERO: Self = 0.0;

    fn plus(self, step: Self) -> Self {
        self + step
    }

    fn minus(self, other: Self) -> Self {
        self - other
    }

    fn middle(self, other: Self) -> Self {
        (self + other) / 2.0
    }

    fn start(self, run: &mut Run<'_>) -> Result<()> {
        run.warm_up(LoadStart::RequestRate(self))?;
        let rate = run.number(self);
        run.out(&format!("Request Rate: {rate} inference requests per seconds\n"));
        run.start_load(LoadStart::RequestRate(self))
    }

    fn point(self) -> LoadPoint {
        LoadPoint::RequestRate(self)
    }
}

pub(super) fn run<L: Level>(run: &mut Run<'_>, range: Range<L>) -> Result<()> {
    match run.parts.settings.search {
        Search::Linear => linear(range, |level| profile(run, level)),
        Search::Binary => binary(range, |level| profile(run, level)),
    }
}

fn profile<L: Level>(run: &mut Run<'_>, level: L) -> Result<PointVerdict> {
    level.start(run)?;
    run.measure_point(level.point())
}

/// Continues while points are stable and within the limit.
fn linear<L: Level>(
    range: Range<L>,
    mut measure: impl FnMut(L) -> Result<PointVerdict>,
) -> Result<()> {
    let mut level = range.start;
    let first = measure(level)?;
    let mut verdict = first;
    level = level.plus(range.step);
    while verdict.meets_limit && (level <= range.end || range.end == L::ZERO) {
        verdict = measure(level)?;
        level = level.plus(range.step);
    }
    // A run with only one point, which is unstable, has found nothing.
    if first.is_stable || first.meets_limit {
        return Ok(());
    }
    let message = "Failed to obtain stable measurement.".into();
    Err(Failure { exit: Exit::Unstable, message })
}

/// Narrows the range to `step` around the point at which the limit is met.
fn binary<L: Level>(
    range: Range<L>,
    mut measure: impl FnMut(L) -> Result<PointVerdict>,
) -> Result<()> {
    let Range { start: mut low, end: mut high, step } = range;
    if !measure(low)?.meets_limit || measure(high)?.meets_limit {
        return Ok(());
    }
    while high.minus(low) > step {
        let level = low.middle(high);
        if measure(level)?.meets_limit {
            low = level;
        } else {
            high = level;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(meets_limit: bool) -> Result<PointVerdict> {
        Ok(PointVerdict { meets_limit, is_stable: true })
    }

    #[test]
    fn a_linear_search_includes_the_end_and_accepts_floats() {
        let mut seen = Vec::new();
        linear(Range { start: 1.0, end: 2.0, step: 0.25 }, |rate| {
            seen.push(rate);
            verdict(true)
        })
        .unwrap();
        assert_eq!(seen, [1.0, 1.25, 1.5, 1.75, 2.0]);
    }

    #[test]
    fn a_linear_search_without_an_end_stops_at_the_limit() {
        let mut seen = Vec::new();
        linear(Range { start: 1, end: 0, step: 3 }, |level| {
            seen.push(level);
            verdict(level < 9)
        })
        .unwrap();
        assert_eq!(seen, [1, 4, 7, 10]);
    }

    #[test]
    fn only_an_unstable_first_point_is_a_failure() {
        let range = Range { start: 1, end: 9, step: 1 };
        let unstable = PointVerdict { meets_limit: false, is_stable: false };
        assert_eq!(linear(range, |_| Ok(unstable)).unwrap_err().exit, Exit::Unstable);
        linear(range, |level| if level == 1 { verdict(true) } else { Ok(unstable) }).unwrap();
        linear(range, |_| verdict(false)).unwrap();
    }

    #[test]
    fn a_binary_search_narrows_the_range() {
        let mut seen = Vec::new();
        binary(Range { start: 1, end: 8, step: 2 }, |level| {
            seen.push(level);
            verdict(level < 3)
        })
        .unwrap();
        assert_eq!(seen, [1, 8, 4, 2]);
    }

    #[test]
    fn a_binary_search_ends_at_once_if_an_end_decides() {
        for (is_fine, points) in [(true, 2), (false, 1)] {
            let mut seen = 0;
            binary(Range { start: 1, end: 8, step: 1 }, |_| {
                seen += 1;
                verdict(is_fine)
            })
            .unwrap();
            assert_eq!(seen, points);
        }
    }
}

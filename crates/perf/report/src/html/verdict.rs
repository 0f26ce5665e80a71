//! What two measurements show. A difference counts only where their confidence intervals do not overlap; everywhere
//! else the page says that none was shown, and gives both intervals.

use super::format;

/// What the confidence intervals of two values say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// They do not overlap.
    Apart,
    /// The difference may be chance.
    Overlapping,
    /// One of them is not known.
    Missing,
}

impl Evidence {
    pub fn of(a: Option<[f64; 2]>, b: Option<[f64; 2]>) -> Self {
        match a.zip(b) {
            None => Self::Missing,
            Some(([a_low, a_high], [b_low, b_high])) if a_low <= b_high && b_low <= a_high => {
                Self::Overlapping
            }
            Some(_) => Self::Apart,
        }
    }
}

/// One measure of two runs at a load that both have.
pub struct Finding {
    pub load: String,
    /// The first run's value over the other's.
    pub ratio: f64,
    /// Those of the two runs.
    pub intervals: [Option<[f64; 2]>; 2],
}

impl Finding {
    fn evidence(&self) -> Evidence {
        Evidence::of(self.intervals[0], self.intervals[1])
    }
}

/// How a measure is named and written.
pub struct Measure<'a> {
    pub name: &'a str,
    pub ratio: fn(f64) -> String,
    pub interval: &'a dyn Fn([f64; 2]) -> String,
}

/// So many loads are named in a sentence; the table has all.
const MOST_NAMED: usize = 3;

impl Measure<'_> {
    /// What is known of the measure over all loads; nothing without any.
    pub fn sentence(&self, findings: &[Finding]) -> Option<String> {
        let of = |evidence| findings.iter().filter(move |one| one.evidence() == evidence);
        let apart: Vec<&Finding> = of(Evidence::Apart).collect();
        let overlapping: Vec<&Finding> = of(Evidence::Overlapping).collect();
        let name = self.name;
        match (apart.len(), overlapping.len()) {
            _ if findings.is_empty() => None,
            (0, 0) => Some(format!(
                "{name}: not judged, for lack of a 95 % confidence interval of the same measure in both runs."
            )),
            (0, _) => {
                Some(format!("{name}: no difference was shown. {}.", self.overlap(&overlapping)))
            }
            (n, _) if n == findings.len() && point_one_way(&apart) => Some(self.headline(&apart)),
            (_, 0) => Some(format!("{name}: {}.", self.each(&apart))),
            _ => Some(format!(
                "{name}: {}. Elsewhere no difference was shown. {}.",
                self.each(&apart),
                self.overlap(&overlapping)
            )),
        }
    }

    fn headline(&self, apart: &[&Finding]) -> String {
        let average = average(apart.iter().map(|one| Some(one.ratio))).unwrap_or(1.0);
        let (name, ratio) = (self.name, (self.ratio)(average));
        match apart {
            [only] => format!(
                "{name}: {ratio} at {}. The 95 % confidence intervals do not overlap: {}.",
                only.load,
                self.pair(only)
            ),
            _ => format!(
                "{name}: {ratio} on average over {} equal loads, at each of which the 95 % confidence intervals do not overlap.",
                apart.len()
            ),
        }
    }

    fn each(&self, findings: &[&Finding]) -> String {
        listed(findings, |one| format!("{} at {}", (self.ratio)(one.ratio), one.load))
    }

    fn overlap(&self, findings: &[&Finding]) -> String {
        let pairs = listed(findings, |one| format!("{} at {}", self.pair(one), one.load));
        format!("The 95 % confidence intervals overlap: {pairs}")
    }

    fn pair(&self, finding: &Finding) -> String {
        let [ours, theirs] =
            finding.intervals.map(|interval| interval.map_or("–".into(), self.interval));
        format!("{ours} against {theirs}")
    }
}

/// The first few in words, the others as a number.
pub fn listed<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let named: Vec<String> = items.iter().take(MOST_NAMED).map(write).collect();
    match items.len() - named.len() {
        0 => named.join("; "),
        1 => format!("{}; and at one more load", named.join("; ")),
        more => format!("{}; and at {} more loads", named.join("; "), format::count(more as u64)),
    }
}

fn point_one_way(findings: &[&Finding]) -> bool {
    findings.iter().all(|one| one.ratio > 1.0) || findings.iter().all(|one| one.ratio < 1.0)
}

/// Geometric, because these are ratios.
fn average(ratios: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Vec<f64> = ratios.flatten().map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(load: &str, ours: [f64; 2], theirs: [f64; 2]) -> Finding {
        let ratio = (ours[0] + ours[1]) / (theirs[0] + theirs[1]);
        Finding { load: load.into(), ratio, intervals: [Some(ours), Some(theirs)] }
    }

    fn sentence(findings: &[Finding]) -> String {
        let interval = |[low, high]: [f64; 2]| format!("{low} – {high}");
        let measure = Measure { name: "Throughput", ratio: format::times, interval: &interval };
        measure.sentence(findings).unwrap_or_default()
    }

    #[test]
    fn a_headline_needs_intervals_apart_at_every_load() {
        let faster = finding("1", [19.0, 21.0], [9.0, 11.0]);
        let much_faster = finding("2", [79.0, 81.0], [9.0, 11.0]);
        let slower = finding("4", [4.0, 6.0], [9.0, 11.0]);
        let same = finding("8", [9.0, 12.0], [8.0, 12.0]);
        let unknown =
            || Finding { load: "16".into(), ratio: 3.0, intervals: [Some([1.0, 2.0]), None] };
        assert_eq!(
            sentence(&[finding("1", [19.0, 21.0], [9.0, 11.0])]),
            "Throughput: ×2.00 at 1. The 95 % confidence intervals do not overlap: 19 – 21 against 9 – 11."
        );
        assert!(
            sentence(&[faster, much_faster])
                .starts_with("Throughput: ×4.00 on average over 2 equal loads")
        );
        assert_eq!(
            sentence(&[same]),
            "Throughput: no difference was shown. The 95 % confidence intervals overlap: 9 – 12 against 8 – 12 at 8."
        );
        let mixed = [finding("1", [19.0, 21.0], [9.0, 11.0]), slower];
        assert_eq!(sentence(&mixed), "Throughput: ×2.00 at 1; ×0.50 at 4.");
        let partly =
            [finding("1", [19.0, 21.0], [9.0, 11.0]), finding("8", [9.0, 12.0], [8.0, 12.0])];
        assert_eq!(
            sentence(&partly),
            "Throughput: ×2.00 at 1. Elsewhere no difference was shown. The 95 % confidence intervals overlap: 9 – 12 against 8 – 12 at 8."
        );
        assert!(sentence(&[unknown()]).starts_with("Throughput: not judged"));
        let with_unknown = [finding("1", [19.0, 21.0], [9.0, 11.0]), unknown()];
        assert_eq!(
            sentence(&with_unknown),
            "Throughput: ×2.00 at 1.",
            "no average over what is not known"
        );
        assert_eq!(sentence(&[]), "");
    }

    #[test]
    fn touching_intervals_overlap() {
        assert_eq!(Evidence::of(Some([1.0, 2.0]), Some([2.0, 3.0])), Evidence::Overlapping);
        assert_eq!(Evidence::of(Some([1.0, 2.0]), Some([2.1, 3.0])), Evidence::Apart);
        assert_eq!(Evidence::of(Some([1.0, 2.0]), None), Evidence::Missing);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(listed(&[1, 2, 3, 4, 5], ToString::to_string), "1; 2; 3; and at 2 more loads");
        assert_eq!(listed(&[1, 2, 3, 4], ToString::to_string), "1; 2; 3; and at one more load");
    }

    #[test]
    fn ratios_are_averaged_as_ratios() {
        let mean = average([Some(2.0), None, Some(0.5)].into_iter());
        assert!(mean.is_some_and(|mean| (mean - 1.0).abs() < 1e-12));
        assert_eq!(average(std::iter::empty()), None);
    }
}

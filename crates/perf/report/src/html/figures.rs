//! What the page shows of a summary, free of values that cannot be drawn.

use std::cmp::Ordering;

use galatea_perf_types::summary::{Latency, Point, Summary};

use super::format;

/// The latency that decides: a percentile, or the average. The first run's is used for all, so that they compare.
#[derive(Clone, Debug)]
pub struct Deciding {
    percentile: Option<u8>,
    key: String,
}

impl Deciding {
    pub fn of(runs: &[Summary]) -> Self {
        let percentile = runs.first().and_then(|run| run.percentile);
        Self { percentile, key: percentile.map(|p| p.to_string()).unwrap_or_default() }
    }

    /// `p95 latency`
    pub fn name(&self) -> String {
        match self.percentile {
            Some(p) => format!("p{p} latency"),
            None => "average latency".into(),
        }
    }

    /// In a table's head: `p95`.
    pub fn short_name(&self) -> String {
        match self.percentile {
            Some(p) => format!("p{p}"),
            None => "average".into(),
        }
    }

    pub fn is_p99(&self) -> bool {
        self.percentile == Some(99)
    }

    pub fn us(&self, point: &Point) -> Option<f64> {
        match self.percentile {
            Some(_) => percentile(&point.latency, &self.key),
            None => format::usable(point.latency.avg_us),
        }
    }

    /// The run's interval is of the latency that decided there.
    pub fn interval(&self, run: &Summary, point: &Point) -> Option<[f64; 2]> {
        point.latency_ci95.filter(|_| run.percentile == self.percentile).and_then(usable_interval)
    }
}

pub fn throughput_interval(point: &Point) -> Option<[f64; 2]> {
    point.throughput_ci95.and_then(usable_interval)
}

/// A wide interval may reach below zero, which no throughput or latency does.
fn usable_interval([low, high]: [f64; 2]) -> Option<[f64; 2]> {
    let low = format::usable(if low < 0.0 { 0.0 } else { low })?;
    format::usable(high).filter(|high| *high >= low).map(|high| [low, high])
}

pub fn percentile(latency: &Latency, key: &str) -> Option<f64> {
    latency.percentiles_us.get(key).copied().and_then(format::usable)
}

/// All percentiles that a run has anywhere, ascending.
pub fn percentile_keys(points: &[&Point]) -> Vec<String> {
    let mut keys: Vec<&String> = points
        .iter()
        .flat_map(|point| [Some(&point.latency), point.scheduled_latency.as_ref()])
        .flatten()
        .flat_map(|latency| latency.percentiles_us.keys())
        .filter(|key| rank(key).is_some())
        .collect();
    keys.sort_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap_or(Ordering::Equal).then(a.cmp(b)));
    keys.dedup();
    keys.into_iter().cloned().collect()
}

fn rank(key: &str) -> Option<f64> {
    key.parse().ok().filter(|rank| (0.0..=100.0).contains(rank))
}

/// Deeper than any ensemble that a person would draw.
pub const DEEPEST: usize = 8;

pub fn amount(us: f64) -> f64 {
    format::usable(us).unwrap_or(0.0)
}

/// Points by load, those without a usable load or throughput left out.
pub fn points(run: &Summary) -> Vec<&Point> {
    let usable = |point: &&Point| {
        format::usable(point.value).is_some() && format::usable(point.throughput).is_some()
    };
    let mut points: Vec<&Point> = run.points.iter().filter(usable).collect();
    points.sort_by(|a, b| a.mode.cmp(&b.mode).then(a.value.total_cmp(&b.value)));
    points
}

/// The point of the highest throughput. One that was not stable counts only where there is no other.
pub fn best(run: &Summary) -> Option<&Point> {
    let by_throughput = |a: &&Point, b: &&Point| {
        b.unstable.cmp(&a.unstable).then(a.throughput.total_cmp(&b.throughput))
    };
    points(run).into_iter().max_by(by_throughput)
}

/// The best of each, where both are under the same kind of load: a rate is what was requested, not what can be had.
pub fn best_of_both<'a>(ours: &'a Summary, theirs: &'a Summary) -> Option<(&'a Point, &'a Point)> {
    best(ours).zip(best(theirs)).filter(|(a, b)| a.mode == b.mode)
}

pub fn load(point: &Point) -> String {
    marked(format::load(&point.mode, point.value), point)
}

/// The load of a point in each of two runs, marked where it was unstable in one.
pub fn load_of_both(ours: &Point, theirs: &Point) -> String {
    let load = format::load(&ours.mode, ours.value);
    if ours.unstable || theirs.unstable { format!("{load} (unstable)") } else { load }
}

/// `Concurrency`, `Requests/s`: the head of the column that has the loads.
pub fn load_name(points: &[&Point]) -> &'static str {
    let is = |mode: &str| !points.is_empty() && points.iter().all(|point| point.mode == mode);
    match () {
        () if is("concurrency") => "Concurrency",
        () if is("request_rate") => "Requests/s",
        () => "Load",
    }
}

/// A load in a column with that head.
pub fn load_cell(points: &[&Point], point: &Point) -> String {
    match load_name(points) {
        "Load" => load(point),
        _ => marked(format::short(point.value), point),
    }
}

fn marked(load: String, point: &Point) -> String {
    if point.unstable { format!("{load}, unstable") } else { load }
}

/// One name for each run; equal labels are numbered.
pub fn names(runs: &[Summary]) -> Vec<String> {
    let label = |run: &Summary| match run.label.trim() {
        "" => "unnamed run".to_string(),
        label => label.to_string(),
    };
    let labels: Vec<String> = runs.iter().map(label).collect();
    let number = |i: usize, label: &String| {
        let same = |other: &&String| *other == label;
        let before = labels.iter().take(i).filter(same).count();
        match labels.iter().filter(same).count() {
            1 => label.clone(),
            _ => format!("{label} ({})", before + 1),
        }
    };
    labels.iter().enumerate().map(|(i, label)| number(i, label)).collect()
}

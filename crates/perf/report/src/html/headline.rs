//! The key figures at the head of the page. A point is called the best, and a run faster than another, only where the
//! confidence intervals do not overlap.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    figures::{self, Deciding},
    format,
    markup::Markup,
    verdict::{Evidence, listed},
};

struct Figure {
    name: String,
    value: String,
    unit: &'static str,
    notes: Vec<String>,
}

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let figures = figures_of(runs, names);
    if figures.is_empty() {
        html.leaf("p", &[("class", &"nothing")], "Nothing was measured.");
        return;
    }
    html.element("dl", &[("class", &"figures")], |html| {
        for figure in figures {
            html.element("div", &[], |html| {
                html.leaf("dt", &[], &figure.name);
                html.element("dd", &[("class", &"value")], |html| {
                    html.text(&figure.value);
                    html.leaf("span", &[("class", &"unit")], format_args!(" {}", figure.unit));
                });
                for note in &figure.notes {
                    html.leaf("dd", &[], note);
                }
            });
        }
    });
}

fn figures_of(runs: &[Summary], names: &[String]) -> Vec<Figure> {
    let deciding = Deciding::of(runs);
    let Some(run) = runs.first() else { return Vec::new() };
    let Some(best) = figures::best(run) else { return Vec::new() };
    let mut figures = vec![throughput(run, best, runs, names)];
    figures.extend(latency(run, best, &deciding, "Latency at that load"));
    let lowest = figures::points(run)
        .into_iter()
        .filter(|point| point.unstable == best.unstable)
        .filter_map(|point| Some((deciding.us(point)?, point)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, point)) = lowest.filter(|(_, point)| !std::ptr::eq(*point, best)) {
        let interval = |point: &Point| deciding.interval(run, point);
        let rank = Rank::of(run, point, &interval);
        let figure =
            latency(run, point, &deciding, rank.name("Lowest latency", "Lowest latency measured"));
        figures.extend(figure.map(|mut figure| {
            figure.notes.extend(rank.note(&format::durations));
            figure
        }));
    }
    figures.push(tool(best));
    figures
}

/// Whether a point is really the best of its run.
enum Rank<'a> {
    /// There is no other.
    Only,
    /// Its interval overlaps none.
    Clear,
    /// Those whose intervals overlap with its own.
    Tied(Vec<(&'a Point, [f64; 2])>),
    /// It has no interval, or another has none.
    Unknown,
}

impl<'a> Rank<'a> {
    fn of(run: &'a Summary, best: &Point, interval: &dyn Fn(&Point) -> Option<[f64; 2]>) -> Self {
        let points = figures::points(run);
        let others: Vec<&Point> =
            points.into_iter().filter(|point| !std::ptr::eq(*point, best)).collect();
        let with = |wanted: Evidence| {
            others
                .iter()
                .filter(move |other| Evidence::of(interval(best), interval(other)) == wanted)
        };
        let tied: Vec<_> = with(Evidence::Overlapping)
            .filter_map(|other| Some((*other, interval(other)?)))
            .collect();
        match () {
            () if others.is_empty() => Self::Only,
            () if !tied.is_empty() => Self::Tied(tied),
            () if with(Evidence::Missing).next().is_some() => Self::Unknown,
            () => Self::Clear,
        }
    }

    fn name(&self, clear: &'static str, measured: &'static str) -> &'static str {
        if matches!(self, Self::Clear) { clear } else { measured }
    }

    fn note(&self, write: &dyn Fn([f64; 2]) -> String) -> Option<String> {
        match self {
            Self::Only | Self::Clear => None,
            Self::Unknown => {
                Some("not every load has a confidence interval to compare with".into())
            }
            Self::Tied(others) => {
                let text = listed(others, |(other, interval)| {
                    format!("{} (95 % CI {})", figures::load(other), write(*interval))
                });
                Some(format!("no difference shown from {text}"))
            }
        }
    }
}

fn throughput(run: &Summary, best: &Point, runs: &[Summary], names: &[String]) -> Figure {
    let mut notes = vec![format!("at {}", figures::load(best))];
    if let Some(interval) = figures::throughput_interval(best) {
        notes.push(format!("95 % CI {}", format::interval(interval)));
    }
    let rank = Rank::of(run, best, &figures::throughput_interval);
    notes.extend(rank.note(&format::interval));
    // Of more than one the comparison has them.
    if let ([run, other], [_, name]) = (runs, names)
        && let Some((ours, theirs)) = figures::best_of_both(run, other)
    {
        notes.extend(against(ours, theirs, name));
    }
    let more = |point: &&Point| point.unstable && point.throughput > best.throughput;
    let name = match rank {
        Rank::Only => "Throughput",
        // What did not become stable may still be more.
        Rank::Clear if !best.unstable && figures::points(run).iter().any(more) => {
            "Best stable throughput"
        }
        _ => rank.name("Best throughput", "Highest throughput measured"),
    };
    Figure {
        name: name.into(),
        value: format::number(best.throughput),
        unit: "inferences/s",
        notes,
    }
}

/// The best of two runs.
fn against(ours: &Point, theirs: &Point, name: &str) -> Option<String> {
    let intervals = [ours, theirs].map(figures::throughput_interval);
    let load = figures::load(theirs);
    match (Evidence::of(intervals[0], intervals[1]), intervals[1]) {
        (Evidence::Apart, _) if theirs.throughput > 0.0 => {
            let times = format::times(ours.throughput / theirs.throughput);
            Some(format!("{times} the best of {name}, at {load}"))
        }
        (Evidence::Overlapping, Some(interval)) => Some(format!(
            "no difference shown from the best of {name}, at {load} (95 % CI {})",
            format::interval(interval)
        )),
        _ => None,
    }
}

fn latency(run: &Summary, point: &Point, deciding: &Deciding, name: &str) -> Option<Figure> {
    let us = deciding.us(point)?;
    let unit = format::Unit::of(us);
    let mut notes = vec![format!("{} at {}", deciding.name(), figures::load(point))];
    if let Some([low, high]) = deciding.interval(run, point) {
        notes.push(format!("95 % CI {} – {} {}", unit.write(low), unit.write(high), unit.name));
    }
    if let Some(p99) = figures::percentile(&point.latency, "99").filter(|_| !deciding.is_p99()) {
        notes.push(format!("p99 {}", format::duration(p99)));
    }
    Some(Figure { name: name.into(), value: unit.write(us), unit: unit.name, notes })
}

/// Whether the tool itself may have been the limit.
fn tool(best: &Point) -> Figure {
    let cpu = format::duration(best.tool_cpu_us_per_request);
    Figure {
        name: "Load tool busy".into(),
        value: format::percent(best.overhead_percent),
        unit: "",
        notes: vec![
            "of its threads\u{2019} time at that load".into(),
            format!("{cpu} of CPU for each request"),
        ],
    }
}

//! Points that did not become stable: every window that was measured, which of them the figures are made of, and why
//! they do not count as stable.

use galatea_perf_types::summary::{Instability, Point, Summary, Trial};

use super::{
    axis::{Axis, Caption, Screen},
    figures::{self, Deciding},
    format::{self, Unit, usable},
    line_chart::{LineChart, Mark, Series},
    markup::Markup,
    scale::Scale,
    style::{self, Look},
    table::{self, Row, Table},
};

/// So many points have a picture; the others have their reason and their table.
const MOST_CHARTS: usize = 6;
/// So many of the last windows are shown; the summary has all.
const MOST_WINDOWS: usize = 60;

/// A point, its run's place and name.
struct Given<'a> {
    run: usize,
    name: String,
    point: &'a Point,
    why: &'a Instability,
}

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let given: Vec<Given<'_>> = runs
        .iter()
        .zip(names)
        .enumerate()
        .flat_map(|(i, (run, name))| of_run(i, run, name, runs.len() > 1))
        .collect();
    if given.is_empty() {
        return;
    }
    let deciding = Deciding::of(runs);
    html.element("section", &[("id", &"unstable")], |html| {
        html.leaf("h2", &[], "Unstable: windows that do not agree");
        let about = "The figures of these points are a hint only. They are made of the last windows (filled marks, solid lines); the windows before (hollow marks, dashed lines) were measured and not merged.";
        html.leaf("p", &[("class", &"about")], about);
        for (i, one) in given.iter().enumerate() {
            draw_point(html, i, one, &deciding);
        }
    });
}

fn of_run<'a>(index: usize, run: &'a Summary, name: &str, is_one_of_many: bool) -> Vec<Given<'a>> {
    let given = |point: &'a Point| {
        let load = format::load(&point.mode, point.value);
        let name = if is_one_of_many { format!("{name}, {load}") } else { load };
        point.instability.as_ref().map(|why| Given { run: index, name, point, why })
    };
    figures::points(run).into_iter().filter_map(given).collect()
}

fn draw_point(html: &mut Markup, index: usize, given: &Given<'_>, deciding: &Deciding) {
    html.leaf("h3", &[("class", &style::run(given.run).class)], format::capitalized(&given.name));
    let reason =
        if given.why.reason.is_empty() { "the windows do not agree" } else { &given.why.reason };
    html.leaf("p", &[("class", &"reason")], format_args!("Unstable because {reason}."));
    let trials = last_of(&given.why.trials);
    if trials.is_empty() {
        return;
    }
    if index < MOST_CHARTS {
        html.element("div", &[("class", &"small-charts")], |html| {
            for measure in [Measure::Throughput, Measure::Latency] {
                html.element("div", &[], |html| draw_chart(html, index, given, &trials, measure));
            }
        });
    }
    let hidden = given.why.trials.len() - trials.len();
    if hidden > 0 {
        let text = format!(
            "{} earlier windows are only in the summary (--json).",
            format::count(hidden as u64)
        );
        html.leaf("p", &[("class", &"about")], text);
    }
    table::numbers(html, &[table_of(given, &trials, deciding)]);
}

/// With their numbers, from 1.
fn last_of(trials: &[Trial]) -> Vec<(usize, &Trial)> {
    let from = trials.len().saturating_sub(MOST_WINDOWS);
    trials.iter().enumerate().skip(from).map(|(i, trial)| (i + 1, trial)).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Measure {
    Throughput,
    Latency,
}

impl Measure {
    fn id(self) -> &'static str {
        if self == Self::Throughput { "throughput" } else { "latency" }
    }

    fn of(self, trial: &Trial) -> Option<f64> {
        match self {
            Self::Throughput => usable(trial.throughput),
            Self::Latency => trial.latency_us.and_then(usable),
        }
    }

    fn write(self, value: f64) -> String {
        match self {
            Self::Throughput => format!("{} inferences/s", format::number(value)),
            Self::Latency => format::duration(value),
        }
    }
}

fn draw_chart(
    html: &mut Markup,
    index: usize,
    given: &Given<'_>,
    trials: &[(usize, &Trial)],
    measure: Measure,
) {
    let values: Vec<f64> = trials.iter().filter_map(|(_, trial)| measure.of(trial)).collect();
    if values.is_empty() {
        return;
    }
    let id = format!("unstable-{index}-{}", measure.id());
    let title = format!("{} of each window, {}", format::capitalized(measure.id()), given.name);
    let description = description(trials, measure);
    for screen in Screen::BOTH {
        let caption = Caption { id: &id, title: &title, description: &description, screen };
        chart(given, trials, &values, measure, screen.pick([470.0, 240.0], [340.0, 240.0]))
            .draw(html, &caption);
    }
}

fn description(trials: &[(usize, &Trial)], measure: Measure) -> String {
    let sentence = |(number, trial): &(usize, &Trial)| {
        let value = measure.of(trial).map_or("failed".into(), |value| measure.write(value));
        let merged = if trial.merged { ", merged" } else { "" };
        format!("Window {number}: {value}{merged}. ")
    };
    trials.iter().map(sentence).collect()
}

fn chart(
    given: &Given<'_>,
    trials: &[(usize, &Trial)],
    values: &[f64],
    measure: Measure,
    size: [f64; 2],
) -> LineChart {
    let numbers: Vec<f64> = trials.iter().map(|(number, _)| *number as f64).collect();
    let merged = Look { dash: "none", hollow: false, ..style::run(given.run) };
    let looks = [(false, merged.clone().dashed()), (true, merged)];
    let series = looks.map(|(is_merged, look)| Series {
        look,
        marks: trials
            .iter()
            .filter(|(_, trial)| trial.merged == is_merged)
            .filter_map(|one| mark(given.point, one, measure))
            .collect(),
        name: String::new(),
    });
    let (title, write): (&str, fn(f64) -> String) = match measure {
        Measure::Throughput => ("inferences/s", format::tick),
        Measure::Latency => ("latency", format::tick_duration),
    };
    LineChart {
        size,
        x: Axis::at_values("window", Scale::of_loads(&numbers), &numbers, format::short),
        y: Axis::new(title, Scale::from_zero(values), 5, write),
        series: series.into(),
    }
}

fn mark(point: &Point, (number, trial): &(usize, &Trial), measure: Measure) -> Option<Mark> {
    let value = measure.of(trial)?;
    let merged = if trial.merged { "merged" } else { "not merged" };
    let load = figures::load(point);
    let tip = format!("{load}\nwindow {number}, {merged}\n{}", measure.write(value));
    Some(Mark { at: [*number as f64, value], tip, ..Mark::default() })
}

fn table_of(given: &Given<'_>, trials: &[(usize, &Trial)], deciding: &Deciding) -> Table {
    let unit = Unit::of_table(trials.iter().filter_map(|(_, trial)| trial.latency_us));
    let latency = format!("{}, {}", deciding.name(), unit.name);
    let rows = trials.iter().map(|(number, trial)| {
        let cells = vec![
            number.to_string(),
            if trial.merged { "merged".into() } else { "no".into() },
            format::number(trial.throughput),
            trial.latency_us.map_or("failed".into(), |us| unit.write(us)),
        ];
        Row { class: "point", cells: cells.into_iter().map(Into::into).collect() }
    });
    Table {
        caption: format!("{}: windows, oldest first", given.name),
        head: ["Window", "In the figures", "Inferences/s", &latency]
            .iter()
            .map(ToString::to_string)
            .collect(),
        rows: rows.collect(),
    }
}

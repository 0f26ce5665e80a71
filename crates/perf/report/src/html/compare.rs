//! The first run against each of the others, at the loads that both have.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    figures::{self, Deciding},
    format::{self, Unit},
    markup::Markup,
    table::{self, Cell, Row, Table},
    verdict::{Evidence, Finding, Measure},
};

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let (Some((ours, others)), Some((our_name, other_names))) =
        (runs.split_first(), names.split_first())
    else {
        return;
    };
    if others.is_empty() {
        return;
    }
    let deciding = Deciding::of(runs);
    html.element("section", &[("id", &"comparison")], |html| {
        html.leaf("h2", &[], "Comparison");
        for (theirs, name) in others.iter().zip(other_names) {
            let pair = Pair { ours, theirs, deciding: &deciding };
            pair.draw(html, our_name, name, others.len() > 1);
        }
        let note = "\u{2248} marks changes where the 95 % confidence intervals (under the values) of the two runs overlap: no difference was shown. Changes without a mark are not judged, for lack of an interval.";
        html.leaf("p", &[("class", &"about")], note);
    });
}

struct Pair<'a> {
    ours: &'a Summary,
    theirs: &'a Summary,
    deciding: &'a Deciding,
}

/// Whether a value should be high or low.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Higher,
    Lower,
}

impl Pair<'_> {
    fn draw(&self, html: &mut Markup, our_name: &str, their_name: &str, is_one_of_many: bool) {
        let points = self.common_points();
        html.element("p", &[("class", &"verdict")], |html| {
            html.leaf("b", &[], our_name);
            html.text(" against ");
            html.leaf("b", &[], their_name);
            html.text(if points.is_empty() { ": no load in common." } else { ":" });
        });
        let verdicts = self.verdicts(&points);
        if !verdicts.is_empty() {
            html.element("ul", &[("class", &"verdicts")], |html| {
                verdicts.iter().for_each(|verdict| html.leaf("li", &[], verdict));
            });
        }
        if self.ours.model != self.theirs.model || self.ours.batch_size != self.theirs.batch_size {
            let note = format!(
                "Not the same load: {} with batch size {} against {} with batch size {}.",
                self.ours.model, self.ours.batch_size, self.theirs.model, self.theirs.batch_size
            );
            html.leaf("p", &[("class", &"caution")], note);
        }
        let table = self.table(&points, our_name, their_name);
        if is_one_of_many {
            table::folded(html, "Load by load", &[table]);
        } else if !table.rows.is_empty() {
            table.draw(html);
        }
    }

    /// Points of equal load.
    fn common_points(&self) -> Vec<(&Point, &Point)> {
        let theirs = figures::points(self.theirs);
        let same = |a: &Point, b: &Point| {
            a.mode == b.mode && (a.value - b.value).abs() <= 1e-6 * a.value.max(b.value)
        };
        figures::points(self.ours)
            .into_iter()
            .filter_map(|ours| Some((ours, *theirs.iter().find(|theirs| same(ours, theirs))?)))
            .collect()
    }

    /// One sentence for each measure that has intervals; p99 has none unless it decides.
    fn verdicts(&self, points: &[(&Point, &Point)]) -> Vec<String> {
        let throughput = self.findings(points, |_, point| {
            (Some(point.throughput), figures::throughput_interval(point))
        });
        let latency = self.findings(points, |run, point| {
            (self.deciding.us(point), self.deciding.interval(run, point))
        });
        let rates = |interval: [f64; 2]| format!("{} inferences/s", format::interval(interval));
        let name = format::capitalized(&self.deciding.name());
        let measures = [
            (Measure { name: "Throughput", ratio: format::times, interval: &rates }, throughput),
            (Measure { name: &name, ratio: format::change, interval: &format::durations }, latency),
        ];
        measures.iter().filter_map(|(measure, findings)| measure.sentence(findings)).collect()
    }

    /// A measure at every common load at which both have it.
    fn findings(
        &self,
        points: &[(&Point, &Point)],
        of: impl Fn(&Summary, &Point) -> (Option<f64>, Option<[f64; 2]>),
    ) -> Vec<Finding> {
        let finding = |(a, b): &(&Point, &Point)| {
            let ((ours, our_interval), (theirs, their_interval)) =
                (of(self.ours, a), of(self.theirs, b));
            let load = figures::load_of_both(a, b);
            let intervals = [our_interval, their_interval];
            Some(Finding { load, ratio: ratio(ours?, theirs?)?, intervals })
        };
        points.iter().filter_map(finding).collect()
    }

    fn table(&self, points: &[(&Point, &Point)], our_name: &str, their_name: &str) -> Table {
        let ours: Vec<&Point> = points.iter().map(|(ours, _)| *ours).collect();
        let latencies = points.iter().flat_map(|(a, b)| [self.deciding.us(a), self.deciding.us(b)]);
        let unit = Unit::of_table(latencies.flatten());
        let mut rows: Vec<Row> = points
            .iter()
            .map(|(a, b)| self.row(figures::load_cell(&ours, a), (a, b), unit, "point"))
            .collect();
        if let Some((a, b)) = figures::best_of_both(self.ours, self.theirs) {
            let loads = format!("best of each: {} and {}", figures::load(a), figures::load(b));
            rows.push(self.row(loads, (a, b), unit, "best"));
        }
        Table {
            caption: format!("{our_name} (first of each pair) against {their_name}"),
            head: self.head(figures::load_name(&ours), unit),
            rows,
        }
    }

    fn head(&self, load: &str, unit: Unit) -> Vec<String> {
        let mut head =
            vec![load.to_string(), "Inferences/s".into(), "against".into(), "ratio".into()];
        let mut names = vec![self.deciding.short_name()];
        if !self.deciding.is_p99() {
            names.push("p99".into());
        }
        for name in names {
            head.extend([format!("{name}, {}", unit.name), "against".into(), "change".into()]);
        }
        head
    }

    fn row(&self, load: String, (a, b): (&Point, &Point), unit: Unit, class: &'static str) -> Row {
        let rates = [figures::throughput_interval(a), figures::throughput_interval(b)];
        let values = [a.throughput, b.throughput].map(format::number);
        let mut cells: Vec<Cell> = vec![load.into()];
        cells.extend(with_intervals(values, rates, &format::interval));
        let rates = Evidence::of(rates[0], rates[1]);
        cells.push(change(ratio(a.throughput, b.throughput), Better::Higher, rates));
        let intervals =
            [self.deciding.interval(self.ours, a), self.deciding.interval(self.theirs, b)];
        cells.extend(latency_cells([self.deciding.us(a), self.deciding.us(b)], unit, intervals));
        if !self.deciding.is_p99() {
            cells.extend(latency_cells([p99(a), p99(b)], unit, [None, None]));
        }
        Row { class, cells }
    }
}

fn p99(point: &Point) -> Option<f64> {
    figures::percentile(&point.latency, "99")
}

fn latency_cells(
    values: [Option<f64>; 2],
    unit: Unit,
    intervals: [Option<[f64; 2]>; 2],
) -> impl Iterator<Item = Cell> {
    let write = |us: Option<f64>| us.map_or("–".into(), |us| unit.write(us));
    let range = |[low, high]: [f64; 2]| format!("{} – {}", unit.write(low), unit.write(high));
    let ratio = values[0].zip(values[1]).and_then(|(a, b)| ratio(a, b));
    let evidence = Evidence::of(intervals[0], intervals[1]);
    let cells = with_intervals(values.map(write), intervals, &range);
    cells.into_iter().chain([change(ratio, Better::Lower, evidence)])
}

fn with_intervals(
    values: [String; 2],
    intervals: [Option<[f64; 2]>; 2],
    write: &dyn Fn([f64; 2]) -> String,
) -> Vec<Cell> {
    let cell = |(text, interval): (String, Option<[f64; 2]>)| Cell {
        below: interval.map(write).unwrap_or_default(),
        ..text.into()
    };
    values.into_iter().zip(intervals).map(cell).collect()
}

fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    (ours > 0.0 && theirs > 0.0).then_some(ours / theirs)
}

fn change(ratio: Option<f64>, better: Better, evidence: Evidence) -> Cell {
    let Some(ratio) = ratio else { return "–".into() };
    let text = match better {
        Better::Higher => format::times(ratio),
        Better::Lower => format::change(ratio),
    };
    let is_better = (ratio > 1.0) == (better == Better::Higher);
    let (class, note) = match evidence {
        Evidence::Missing => ("unjudged", "not judged, no confidence interval"),
        Evidence::Overlapping => ("even", "no difference shown"),
        Evidence::Apart if (ratio - 1.0).abs() < 0.005 => ("even", "hardly a difference"),
        Evidence::Apart if is_better => ("better", "better"),
        Evidence::Apart => ("worse", "worse"),
    };
    Cell { text, class, note, ..Cell::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_better_or_worse_by_what_it_changes_and_only_where_it_was_shown() {
        use Evidence::{Apart, Missing, Overlapping};
        let classes = [
            change(Some(1.2), Better::Higher, Apart).class,
            change(Some(1.2), Better::Lower, Apart).class,
            change(Some(0.8), Better::Lower, Apart).class,
            change(Some(0.8), Better::Lower, Overlapping).class,
            change(Some(0.8), Better::Lower, Missing).class,
            change(Some(1.001), Better::Higher, Apart).class,
        ];
        assert_eq!(classes, ["better", "worse", "better", "even", "unjudged", "even"]);
    }
}

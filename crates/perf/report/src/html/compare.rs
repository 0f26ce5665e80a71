//! The first run against each of the others, at the loads that both have.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    figures::{self, Deciding},
    format::{self, Unit},
    markup::Markup,
    table::{self, Cell, Row, Table},
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
        let note = "Changes are grey where the confidence intervals of the two runs overlap: they may be chance.";
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
            html.text(": ");
            html.text(self.verdict(&points));
        });
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

    /// Averages over the common loads, geometric because they are ratios.
    fn verdict(&self, points: &[(&Point, &Point)]) -> String {
        let throughput = average(points.iter().map(|(a, b)| ratio(a.throughput, b.throughput)));
        let latency = |of: &dyn Fn(&Point) -> Option<f64>| {
            average(points.iter().map(|(a, b)| ratio(of(a)?, of(b)?)))
        };
        let mut parts = Vec::new();
        parts.extend(throughput.map(|r| format!("{} throughput", format::times(r))));
        let deciding = latency(&|point| self.deciding.us(point));
        parts.extend(deciding.map(|r| format!("{} {}", self.deciding.name(), format::change(r))));
        if !self.deciding.is_p99() {
            let p99 = latency(&p99);
            parts.extend(p99.map(|r| format!("p99 {}", format::change(r))));
        }
        match (points.len(), parts.is_empty()) {
            (0, _) | (_, true) => "no load in common.".into(),
            (1, _) => format!("{} at the load both have.", parts.join(", ")),
            (n, _) => format!("{} on average over {n} equal loads.", parts.join(", ")),
        }
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
            rows.push(self.row("best of each".into(), (a, b), unit, "best"));
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
        let overlap = overlaps(figures::throughput_interval(a), figures::throughput_interval(b));
        let mut cells: Vec<Cell> = vec![load.into()];
        cells.extend([format::number(a.throughput).into(), format::number(b.throughput).into()]);
        cells.push(change(ratio(a.throughput, b.throughput), Better::Higher, overlap));
        let intervals =
            [self.deciding.interval(self.ours, a), self.deciding.interval(self.theirs, b)];
        let overlap = overlaps(intervals[0], intervals[1]);
        cells.extend(latency_cells(self.deciding.us(a), self.deciding.us(b), unit, overlap));
        if !self.deciding.is_p99() {
            cells.extend(latency_cells(p99(a), p99(b), unit, false));
        }
        Row { class, cells }
    }
}

fn p99(point: &Point) -> Option<f64> {
    figures::percentile(&point.latency, "99")
}

fn latency_cells(a: Option<f64>, b: Option<f64>, unit: Unit, overlap: bool) -> [Cell; 3] {
    let write = |us: Option<f64>| us.map_or("–".into(), |us| unit.write(us)).into();
    let ratio = a.zip(b).and_then(|(a, b)| ratio(a, b));
    [write(a), write(b), change(ratio, Better::Lower, overlap)]
}

fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    (ours > 0.0 && theirs > 0.0).then_some(ours / theirs)
}

fn average(ratios: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Vec<f64> = ratios.flatten().map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

fn overlaps(a: Option<[f64; 2]>, b: Option<[f64; 2]>) -> bool {
    matches!((a, b), (Some([a_low, a_high]), Some([b_low, b_high])) if a_low <= b_high && b_low <= a_high)
}

fn change(ratio: Option<f64>, better: Better, overlap: bool) -> Cell {
    let Some(ratio) = ratio else { return "–".into() };
    let text = match better {
        Better::Higher => format::times(ratio),
        Better::Lower => format::change(ratio),
    };
    let is_better = (ratio > 1.0) == (better == Better::Higher);
    let (class, note) = match () {
        () if overlap || (ratio - 1.0).abs() < 0.005 => ("even", "no clear difference"),
        () if is_better => ("better", "better"),
        () => ("worse", "worse"),
    };
    Cell { text, class, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_better_or_worse_by_what_it_changes() {
        let classes = [
            change(Some(1.2), Better::Higher, false).class,
            change(Some(1.2), Better::Lower, false).class,
            change(Some(0.8), Better::Lower, false).class,
            change(Some(0.8), Better::Lower, true).class,
            change(Some(1.001), Better::Higher, false).class,
        ];
        assert_eq!(classes, ["better", "worse", "better", "even", "even"]);
    }

    #[test]
    fn ratios_are_averaged_as_ratios() {
        let mean = average([Some(2.0), None, Some(0.5)].into_iter());
        assert!(mean.is_some_and(|mean| (mean - 1.0).abs() < 1e-12));
        assert_eq!(average(std::iter::empty()), None);
    }
}

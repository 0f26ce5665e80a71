//! The windows of each point: whether the throughput was steady while it was measured.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    axis::{self, Caption, Screen},
    figures,
    format::{self, Unit, usable},
    markup::{Markup, Px},
    style,
    table::{self, Row, Table},
};

const CELL: [f64; 2] = [158.0, 74.0];
/// The cells' scale reaches at least this far from the average, so that noise does not look like a trend.
const LEAST_SPREAD: f64 = 0.1;

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let has_windows = |run: &Summary| run.points.iter().any(|point| point.windows.len() > 1);
    if !runs.iter().any(has_windows) {
        return;
    }
    html.element("section", &[("id", &"windows")], |html| {
        html.leaf("h2", &[], "Stability");
        html.leaf(
            "p",
            &[("class", &"about")],
            "Throughput of each window that was merged against the average of its point; the titles are the load. A flat line is a steady server.",
        );
        let mut tables = Vec::new();
        for (i, (run, name)) in runs.iter().zip(names).enumerate() {
            let points = figures::points(run);
            draw_run(html, i, &points, name, runs.len() > 1);
            tables.push(table_of(&points, name));
        }
        table::numbers(html, &tables);
    });
}

fn draw_run(html: &mut Markup, index: usize, points: &[&Point], name: &str, is_one_of_many: bool) {
    let cells: Vec<Cell> = points.iter().filter_map(|point| Cell::of(point)).collect();
    if is_one_of_many {
        html.leaf("h3", &[("class", &format!("run{}", index % 6))], name);
    }
    if cells.is_empty() {
        html.leaf("p", &[("class", &"nothing")], "No point has more than one window.");
        return;
    }
    let spread = cells.iter().map(Cell::spread).fold(LEAST_SPREAD, f64::max);
    let title = format!("Throughput of the windows, {name}");
    let about: String = cells
        .iter()
        .map(|cell| format!("{}: within {} of the average. ", cell.load, percent(cell.spread())))
        .collect();
    let id = format!("windows-{index}");
    for screen in Screen::BOTH {
        let caption = Caption { id: &id, title: &title, description: &about, screen };
        draw_cells(html, &caption, &cells, spread, &style::run(index).class);
    }
    let text = format!(
        "The lines above and below are ±{} of the average.",
        format::percent(spread * 100.0)
    );
    html.leaf("p", &[("class", &"about")], text);
}

fn draw_cells(html: &mut Markup, caption: &Caption<'_>, cells: &[Cell], spread: f64, class: &str) {
    let (columns, width) = caption.screen.pick((6, 960.0), (2, 340.0));
    let rows = cells.len().div_ceil(columns);
    axis::chart(html, caption, [width, rows as f64 * CELL[1] + 4.0], |svg| {
        svg.element("g", &[("class", &class)], |svg| {
            for (i, cell) in cells.iter().enumerate() {
                let (column, row) = (i % columns, i / columns);
                cell.draw(svg, [column as f64 * (CELL[0] + 2.0), row as f64 * CELL[1]], spread);
            }
        });
    });
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// One point.
struct Cell {
    load: String,
    /// Short enough for its place.
    title: String,
    throughputs: Vec<f64>,
    average: f64,
}

impl Cell {
    fn of(point: &Point) -> Option<Self> {
        let throughputs: Vec<f64> =
            point.windows.iter().filter_map(|window| usable(window.throughput)).collect();
        let average = throughputs.iter().sum::<f64>() / throughputs.len().max(1) as f64;
        let load = figures::load(point);
        let title = match point.mode.as_str() {
            "request_rate" => format!("{}/s", format::short(point.value)),
            _ => format::short(point.value),
        };
        (throughputs.len() > 1 && average > 0.0).then_some(Self {
            load,
            title,
            throughputs,
            average,
        })
    }

    /// The largest distance from the average, as a ratio.
    fn spread(&self) -> f64 {
        let distance = |v: &f64| (v / self.average - 1.0).abs();
        self.throughputs.iter().map(distance).fold(0.0, f64::max)
    }

    fn draw(&self, svg: &mut Markup, [left, top]: [f64; 2], spread: f64) {
        let (from, to) = (left + 8.0, left + CELL[0] - 12.0);
        let (middle, half) = (top + 46.0, 18.0);
        svg.element("g", &[("class", &"cell")], |svg| {
            axis::text(svg, "cell-title", [left + 4.0, top + 16.0], &self.title);
            let spread_text = format!("±{}", percent(self.spread()));
            axis::text(svg, "cell-note end", [to + 4.0, top + 16.0], &spread_text);
            axis::line(svg, "grid", [from, middle - half, to, middle - half]);
            axis::line(svg, "base", [from, middle, to, middle]);
            axis::line(svg, "grid", [from, middle + half, to, middle + half]);
            let step = (to - from) / (self.throughputs.len() - 1).max(1) as f64;
            let at = |(i, v): (usize, &f64)| {
                (from + step * i as f64, middle - half * (v / self.average - 1.0) / spread)
            };
            let path = style::open_path(self.throughputs.iter().enumerate().map(at));
            svg.empty("path", &[("class", &"line"), ("d", &path)]);
            for (i, v) in self.throughputs.iter().enumerate() {
                let (x, y) = at((i, v));
                let place = [("class", &"dot" as _), ("cx", &Px(x) as _), ("cy", &Px(y) as _)];
                let [class, cx, cy] = place;
                svg.element("circle", &[class, cx, cy, ("r", &"3")], |svg| {
                    let v = format::number(*v);
                    svg.leaf(
                        "title",
                        &[],
                        format_args!("{}\nwindow {}: {v} inferences/s", self.load, i + 1),
                    );
                });
            }
        });
    }
}

fn table_of(points: &[&Point], name: &str) -> Table {
    let windows = || points.iter().flat_map(|point| &point.windows);
    let unit = Unit::of_table(windows().map(|window| window.latency_us));
    let latencies = format!("Latency of each window, {}", unit.name);
    let head = [figures::load_name(points), "Windows", "Inferences/s of each window", &latencies];
    let rows = points.iter().map(|point| {
        let join = |texts: Vec<String>| texts.join("\u{2002}");
        let cells = vec![
            figures::load_cell(points, point),
            format::count(point.windows.len() as u64),
            join(point.windows.iter().map(|window| format::number(window.throughput)).collect()),
            join(point.windows.iter().map(|window| unit.write(window.latency_us)).collect()),
        ];
        Row { class: "point", cells: cells.into_iter().map(Into::into).collect() }
    });
    Table {
        caption: format!("{name}: windows, oldest first"),
        head: head.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
    }
}

//! Latency percentiles by load: how far the slow requests are from the usual ones. One small chart for each run, all
//! on the same scale.

use galatea_perf_types::summary::{Latency, Point, Summary};

use super::{
    axis::{Axis, Caption, Screen},
    figures,
    format::{self, Unit},
    line_chart::{LineChart, Mark, Series},
    markup::Markup,
    scale::Scale,
    style::{self, Look},
    table::{self, Row, Table},
};

const LOG_FROM: f64 = 15.0;

/// Those drawn a second time as the schedule saw them; all of them would hide each other.
const SCHEDULED: [&str; 2] = ["50", "99"];

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    html.element("section", &[("id", &"latency")], |html| {
        html.leaf("h2", &[], "Latency percentiles");
        let points: Vec<Vec<&Point>> = runs.iter().map(figures::points).collect();
        let all: Vec<&Point> = points.iter().flatten().copied().collect();
        let keys = figures::percentile_keys(&all);
        if keys.is_empty() {
            html.leaf("p", &[("class", &"nothing")], "No percentiles were measured.");
        } else {
            draw_about(html, &all);
            draw_legend(html, &keys, &all);
            draw_charts(html, &points, names, &keys);
        }
        let tables: Vec<Table> =
            points.iter().zip(names).map(|(points, name)| table_of(points, name, &keys)).collect();
        table::numbers(html, &tables);
    });
}

fn draw_about(html: &mut Markup, points: &[&Point]) {
    let scheduled = if has_schedule(points) {
        " Dashed: counted from when the schedule wanted each request sent, so that a stalled server is not spared."
    } else {
        ""
    };
    html.leaf(
        "p",
        &[("class", &"about")],
        format_args!("Time from sending a request to its response, by load.{scheduled}"),
    );
}

fn has_schedule(points: &[&Point]) -> bool {
    points.iter().any(|point| point.scheduled_latency.is_some())
}

fn draw_legend(html: &mut Markup, keys: &[String], points: &[&Point]) {
    let mut entries: Vec<(Look, String)> = keys
        .iter()
        .enumerate()
        .map(|(rank, key)| (style::percentile(rank, keys.len()), format!("p{key}")))
        .collect();
    if has_schedule(points) {
        let scheduled =
            keys.iter().enumerate().filter(|(_, key)| SCHEDULED.contains(&key.as_str()));
        entries.extend(scheduled.map(|(rank, key)| {
            (style::percentile(rank, keys.len()).dashed(), format!("p{key} from the schedule"))
        }));
    }
    let entries: Vec<_> =
        entries.iter().map(|(look, name)| (look.clone(), name.as_str())).collect();
    style::legend(html, &entries);
}

fn draw_charts(html: &mut Markup, points: &[Vec<&Point>], names: &[String], keys: &[String]) {
    let is_alone = points.len() == 1;
    let values: Vec<f64> = points
        .iter()
        .flatten()
        .flat_map(|point| lines_of(point, keys).into_iter().filter_map(|line| line.us))
        .collect();
    let scale = Scale::fitting(&values, LOG_FROM);
    html.element("div", &[("class", if is_alone { &"single" } else { &"small-charts" })], |html| {
        for (i, (points, name)) in points.iter().zip(names).enumerate() {
            html.element("figure", &[], |html| {
                if !is_alone {
                    let class = format!("run{}", i % 6);
                    html.leaf("figcaption", &[("class", &class)], name);
                }
                if points.is_empty() {
                    html.leaf("p", &[("class", &"nothing")], "Nothing was measured.");
                    return;
                }
                let wide = if is_alone { [960.0, 380.0] } else { [470.0, 320.0] };
                let title = format!("Latency percentiles, {name}");
                let (id, description) = (format!("latency-{i}"), description(points, keys));
                for screen in Screen::BOTH {
                    let (title, description) = (&title, &description);
                    let caption = Caption { id: &id, title, description, screen };
                    let size = screen.pick(wide, [340.0, 320.0]);
                    chart(points, keys, scale, size).draw(html, &caption);
                }
            });
        }
    });
}

fn description(points: &[&Point], keys: &[String]) -> String {
    let ends = [points.first(), points.last().filter(|_| points.len() > 1)];
    let sentences = ends.into_iter().flatten().map(|point| {
        let values = keys.iter().filter_map(|key| {
            let us = figures::percentile(&point.latency, key)?;
            Some(format!("p{key} {}", format::duration(us)))
        });
        format!("At {}: {}. ", figures::load(point), values.collect::<Vec<_>>().join(", "))
    });
    sentences.collect()
}

fn chart(points: &[&Point], keys: &[String], y: Scale, size: [f64; 2]) -> LineChart {
    let loads: Vec<f64> = points.iter().map(|point| point.value).collect();
    let x = Scale::of_loads(&loads);
    let lines: Vec<Line> = points.first().map(|point| lines_of(point, keys)).unwrap_or_default();
    let series = lines.into_iter().enumerate().map(|(i, line)| Series {
        marks: points.iter().filter_map(|point| mark(point, keys, i)).collect(),
        look: line.look,
        name: line.end,
    });
    LineChart {
        size,
        x: Axis::at_values(&figures::load_name(points).to_lowercase(), x, &loads, format::short),
        y: Axis::new("latency", y, 7, format::tick_duration),
        series: series.collect(),
    }
}

fn mark(point: &Point, keys: &[String], line: usize) -> Option<Mark> {
    let line = lines_of(point, keys).into_iter().nth(line)?;
    let us = line.us?;
    let tip = format!("{}\n{}: {}", figures::load(point), line.name, format::duration(us));
    Some(Mark { at: [point.value, us], tip, ..Mark::default() })
}

/// A line of the chart and its value at a point.
struct Line {
    look: Look,
    name: String,
    end: String,
    us: Option<f64>,
}

/// The same lines in the same order for every point.
fn lines_of(point: &Point, keys: &[String]) -> Vec<Line> {
    let scheduled = point.scheduled_latency.as_ref();
    let line = |rank: usize, key: &String| Line {
        look: style::percentile(rank, keys.len()),
        name: format!("p{key}"),
        end: format!("p{key}"),
        us: figures::percentile(&point.latency, key),
    };
    let dashed = |(rank, key): (usize, &String)| Line {
        look: style::percentile(rank, keys.len()).dashed(),
        name: format!("p{key} from the schedule"),
        end: String::new(),
        us: scheduled.and_then(|latency| figures::percentile(latency, key)),
    };
    let lines = keys.iter().enumerate().map(|(rank, key)| line(rank, key));
    let again = keys.iter().enumerate().filter(|(_, key)| SCHEDULED.contains(&key.as_str()));
    lines.chain(again.map(dashed)).collect()
}

fn table_of(points: &[&Point], name: &str, keys: &[String]) -> Table {
    let values = points.iter().flat_map(|point| point.latency.percentiles_us.values().copied());
    let unit = Unit::of_table(values.chain(points.iter().map(|point| point.latency.avg_us)));
    let mut head: Vec<String> =
        [figures::load_name(points), "Counted from", "Average", "Deviation", "Min"]
            .iter()
            .map(ToString::to_string)
            .collect();
    head.extend(keys.iter().map(|key| format!("p{key}")));
    head.push("Max".into());
    let rows = points.iter().flat_map(|point| {
        let load = figures::load_cell(points, point);
        let sent = row(load.clone(), "sending", &point.latency, keys, unit);
        let scheduled = point.scheduled_latency.as_ref();
        [Some(sent), scheduled.map(|latency| row(load, "schedule", latency, keys, unit))]
    });
    let rows = rows.flatten().collect();
    Table { caption: format!("{name}: latencies in {}", unit.name), head, rows }
}

fn row(load: String, from: &str, latency: &Latency, keys: &[String], unit: Unit) -> Row {
    let before = [latency.avg_us, latency.std_us, latency.min_us].map(|us| unit.write(us));
    let percentile =
        |key: &String| figures::percentile(latency, key).map_or("–".into(), |us| unit.write(us));
    let mut cells = vec![load, from.to_string()];
    cells.extend(before);
    cells.extend(keys.iter().map(percentile));
    cells.push(unit.write(latency.max_us));
    Row { class: "point", cells: cells.into_iter().map(Into::into).collect() }
}

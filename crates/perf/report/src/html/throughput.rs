//! Throughput against latency: what more load gains, and what it costs.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    axis::{Axis, Caption, Screen},
    figures::{self, Deciding},
    format::{self, Unit},
    line_chart::{LineChart, Mark, Series},
    markup::Markup,
    scale::Scale,
    style,
    table::{self, Row, Table},
};

/// Over this ratio between the largest and the smallest latency a linear axis would squeeze the small ones together.
const LOG_FROM: f64 = 12.0;

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let deciding = Deciding::of(runs);
    let series: Vec<Series> = runs
        .iter()
        .zip(names)
        .enumerate()
        .map(|(i, (run, name))| series(i, run, name, &deciding))
        .collect();
    html.element("section", &[("id", &"throughput")], |html| {
        html.leaf("h2", &[], "Throughput against latency");
        let about = "Up and to the left is better. Numbers beside the points are the load; bars are 95 % confidence intervals (CI) over the windows.";
        html.leaf("p", &[("class", &"about")], about);
        if runs.len() > 1 {
            let looks: Vec<_> =
                series.iter().zip(names).map(|(s, name)| (s.look.clone(), name.as_str())).collect();
            style::legend(html, &looks);
        }
        let description = runs.iter().zip(names).map(|(r, n)| sentence(r, n, &deciding)).collect::<String>();
        if series.iter().all(|series| series.marks.is_empty()) {
            html.leaf("p", &[("class", &"nothing")], "Nothing was measured.");
        } else {
            for screen in Screen::BOTH {
                let caption = Caption {
                    id: "throughput-chart",
                    title: "Throughput against latency",
                    description: &description,
                    screen,
                };
                chart(series.clone(), &deciding, screen).draw(html, &caption);
            }
        }
        let tables: Vec<Table> =
            runs.iter().zip(names).map(|(run, name)| table_of(run, name, &deciding)).collect();
        table::numbers(html, &tables);
    });
}

fn chart(series: Vec<Series>, deciding: &Deciding, screen: Screen) -> LineChart {
    // One point has no spread to zoom into.
    let is_single = series.iter().map(|series| series.marks.len()).sum::<usize>() == 1;
    let marks = || series.iter().flat_map(|series| &series.marks);
    let mut x: Vec<f64> = marks().map(|mark| mark.at[0]).collect();
    // Wide intervals may run out of the picture, but not squeeze the points together.
    let inside = |mark: &Mark| {
        let [low, high] = mark.x_interval?;
        Some([low.max(mark.at[0] / 2.0), high.min(mark.at[0] * 2.0)])
    };
    x.extend(marks().filter_map(inside).flatten());
    let mut y: Vec<f64> = marks().map(|mark| mark.at[1]).collect();
    y.extend(marks().filter_map(|mark| mark.y_interval).flatten());
    let x = if is_single { Scale::from_zero(&x) } else { Scale::fitting(&x, LOG_FROM) };
    LineChart {
        size: screen.pick([960.0, 440.0], [340.0, 320.0]),
        x: Axis::new(&deciding.name(), x, screen.pick(9, 4), format::tick_duration),
        y: Axis::new("inferences/s", Scale::from_zero(&y), 6, format::tick),
        series,
    }
}

fn series(index: usize, run: &Summary, name: &str, deciding: &Deciding) -> Series {
    let mark = |point: &&Point| {
        let us = deciding.us(point)?;
        Some(Mark {
            at: [us, point.throughput],
            x_interval: deciding.interval(run, point),
            y_interval: figures::throughput_interval(point),
            label: format::short(point.value),
            tip: format!(
                "{name}\n{}\n{} inferences/s\n{} {}",
                figures::load(point),
                format::number(point.throughput),
                deciding.name(),
                format::duration(us)
            ),
        })
    };
    let marks = figures::points(run).iter().filter_map(mark).collect();
    Series { look: style::run(index), marks, name: String::new() }
}

fn sentence(run: &Summary, name: &str, deciding: &Deciding) -> String {
    let points = figures::points(run);
    let say = |point: &Point| {
        let latency = deciding.us(point).map_or("–".into(), format::duration);
        let throughput = format::number(point.throughput);
        format!("{throughput} inferences/s with {latency} at {}", figures::load(point))
    };
    match (points.first(), points.last()) {
        (Some(only), Some(_)) if points.len() == 1 => format!("{name}: {}. ", say(only)),
        (Some(first), Some(last)) => format!("{name}: from {} to {}. ", say(first), say(last)),
        _ => format!("{name}: no points. "),
    }
}

fn table_of(run: &Summary, name: &str, deciding: &Deciding) -> Table {
    let points = figures::points(run);
    let unit = Unit::of_table(points.iter().filter_map(|point| deciding.us(point)));
    let latency = format!("{}, {}", deciding.name(), unit.name);
    let head = [
        figures::load_name(&points),
        "Inferences/s",
        "95 % CI",
        &latency,
        "95 % CI",
        "Responses/s",
        "Requests",
        "Delayed",
        "Duration, s",
        "Tool busy",
        "Tool CPU/request",
    ];
    let has_responses = points.iter().any(|point| point.response_throughput.is_some());
    let has_delayed = points.iter().any(|point| point.delayed_request_count > 0);
    let rows = points.iter().map(|point| {
        let range = |interval: Option<[f64; 2]>, write: &dyn Fn(f64) -> String| {
            interval.map_or("–".into(), |[low, high]| format!("{} – {}", write(low), write(high)))
        };
        let cells = vec![
            figures::load_cell(&points, point),
            format::number(point.throughput),
            range(figures::throughput_interval(point), &format::number),
            deciding.us(point).map_or("–".into(), |us| unit.write(us)),
            range(deciding.interval(run, point), &|us| unit.write(us)),
            point.response_throughput.map_or("–".into(), format::number),
            format::count(point.request_count),
            format::count(point.delayed_request_count),
            format::number(point.duration_s),
            format::percent(point.overhead_percent),
            format::duration(point.tool_cpu_us_per_request),
        ];
        Row { class: "point", cells: cells.into_iter().map(Into::into).collect() }
    });
    let table = Table {
        caption: format!("{name}: throughput and {}", deciding.name()),
        head: head.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
    };
    table.without("Responses/s", !has_responses).without("Delayed", !has_delayed)
}

//! What was measured, the key figures, the warnings; and at the end of the page where each run came from.

use galatea_perf_types::summary::{Point, Summary};

use super::{
    figures::{self, Deciding},
    format,
    markup::Markup,
    table::{Row, Table},
};

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    html.element("header", &[], |html| {
        let Some(run) = runs.first() else {
            html.leaf("h1", &[], "No run");
            return;
        };
        html.leaf("p", &[("class", &"kicker")], "Load test");
        html.leaf("h1", &[], &run.model);
        draw_facts(html, run);
        draw_command(html, &run.command);
        draw_warnings(html, runs, names);
        draw_figures(html, runs, names);
    });
}

/// Word by word, so that lines break between options and not inside them.
fn draw_command(html: &mut Markup, command: &str) {
    html.element("pre", &[("class", &"command")], |html| {
        html.element("code", &[], |html| {
            for (i, word) in command.split(' ').enumerate() {
                html.text(if i == 0 { "" } else { " " });
                html.leaf("span", &[], word);
            }
        });
    });
}

fn draw_facts(html: &mut Markup, run: &Summary) {
    let version = match run.model_version.as_str() {
        "" => "latest".to_string(),
        version => version.to_string(),
    };
    let facts = [
        ("Server", server(run)),
        ("Protocol", run.protocol.clone()),
        ("Model version", version),
        ("Batch size", format::count(run.batch_size)),
        ("Measured", format::date(run.started_at)),
    ];
    html.element("dl", &[("class", &"facts")], |html| {
        for (name, value) in facts {
            html.element("div", &[], |html| {
                html.leaf("dt", &[], name);
                html.leaf("dd", &[], value);
            });
        }
    });
}

fn server(run: &Summary) -> String {
    let reported = format!("{} {}", run.server_name, run.server_version);
    match (reported.trim(), run.server_implementation.as_str()) {
        ("", "") => "unknown".into(),
        (reported, "") => reported.to_string(),
        (reported, implementation) => format!("{reported} ({implementation})"),
    }
}

fn draw_warnings(html: &mut Markup, runs: &[Summary], names: &[String]) {
    let warnings: Vec<(&String, &String)> = runs
        .iter()
        .zip(names)
        .flat_map(|(run, name)| run.warnings.iter().map(move |warning| (name, warning)))
        .collect();
    if warnings.is_empty() {
        return;
    }
    html.element("div", &[("class", &"warnings"), ("role", &"note")], |html| {
        html.leaf("h2", &[], if warnings.len() == 1 { "Warning" } else { "Warnings" });
        html.element("ul", &[], |html| {
            for (name, warning) in warnings {
                html.element("li", &[], |html| {
                    if runs.len() > 1 {
                        html.leaf("b", &[], format_args!("{name}: "));
                    }
                    html.text(warning.trim());
                });
            }
        });
    });
}

struct Figure {
    name: String,
    value: String,
    unit: &'static str,
    notes: Vec<String>,
}

fn draw_figures(html: &mut Markup, runs: &[Summary], names: &[String]) {
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
    let mut figures = vec![throughput(best, runs, names)];
    figures.extend(latency(run, best, &deciding, "Latency at that load"));
    let lowest = figures::points(run)
        .into_iter()
        .filter_map(|point| Some((deciding.us(point)?, point)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, point)) = lowest.filter(|(_, point)| !std::ptr::eq(*point, best)) {
        figures.extend(latency(run, point, &deciding, "Lowest latency"));
    }
    figures.push(tool(best));
    figures
}

fn throughput(best: &Point, runs: &[Summary], names: &[String]) -> Figure {
    let mut notes = vec![format!("at {}", figures::load(best))];
    if let Some([low, high]) = figures::throughput_interval(best) {
        let (low, high) = (format::number(low), format::number(high));
        notes.push(format!("95 % CI {low} – {high}"));
    }
    // Of more than one the comparison has them.
    if let ([run, other], [_, name]) = (runs, names)
        && let Some((ours, theirs)) = figures::best_of_both(run, other)
        && theirs.throughput > 0.0
    {
        let times = format::times(ours.throughput / theirs.throughput);
        notes.push(format!("{times} the best of {name}"));
    }
    Figure {
        name: "Best throughput".into(),
        value: format::number(best.throughput),
        unit: "inferences/s",
        notes,
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

/// Where each run came from.
pub fn draw_runs(html: &mut Markup, runs: &[Summary], names: &[String]) {
    if runs.len() < 2 {
        return;
    }
    let head = [
        "Run",
        "Model",
        "Version",
        "Server",
        "Protocol",
        "Batch size",
        "Points",
        "Measured",
        "Command",
    ];
    let rows = runs.iter().zip(names).map(|(run, name)| Row {
        class: "texts",
        cells: vec![
            name.clone().into(),
            run.model.clone().into(),
            run.model_version.clone().into(),
            server(run).into(),
            run.protocol.clone().into(),
            format::count(run.batch_size).into(),
            format::count(run.points.len() as u64).into(),
            format::date(run.started_at).into(),
            super::table::Cell { text: run.command.clone(), class: "code", note: "" },
        ],
    });
    let table = Table {
        caption: "All runs of this page".into(),
        head: head.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
    };
    html.element("section", &[("id", &"runs")], |html| {
        html.leaf("h2", &[], "Runs");
        table.draw(html);
    });
}

//! What was measured, the key figures, the warnings; and at the end of the page where each run came from.

use galatea_perf_types::summary::Summary;

use super::{
    format, headline,
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
        headline::draw(html, runs, names);
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
            super::table::Cell { class: "code", ..run.command.clone().into() },
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

//! `docs/metrics.md`, made from the table of families.

use std::fmt::Write;

use crate::families::{Family, SECTIONS};

const HEAD: &str = "\
# Metrics

The server reports these metrics as Prometheus text at `/metrics` of the metrics port (`--metrics-port`, 8002 by default),
unless `--allow-metrics=false`; with `--http-metrics=true` at the HTTP port too. Each is always shown, unless its section or row
says when. `/metrics?scope=server` is short: it has load, memory, front ends, control and the program, and no figures of models.

Families with `nv_` are Triton's, with its names, help texts and units; those with `galatea_` are this server's own.
[compat.md](compat.md) says what differs from Triton. `galatea manual metrics` makes this page from the program's table.

- Families of a model also have the label `namespace` with `--model-namespacing`, and a label `_key` for each of
  `metric_tags` in its configuration. They begin at zero when the version is loaded.
- A histogram has a sample for each bucket (label `le`), `_sum` and `_count`. The model's configuration can set its buckets,
  200 at most: `model_metrics { metric_control { metric_identifier { family: \"galatea_inference_request_duration_seconds\" }
  histogram_options { buckets: [ 0.001, 0.01, 0.1 ] } } }`.
- A summary has a sample for each quantile (label `quantile`; `--metrics-config=summary_quantiles=0.5:0.05,0.99:0.001`),
  `_sum` and `_count`. Quantiles cover the last 48 to 60 seconds; `Nan` means that nothing happened. They are exact to 1/64
  of their value; the server ignores the error in the flag. Summaries cannot be added over servers; histograms can.
- The figures of one model in one answer fit each other: what a histogram counts is what the counters count.
";

/// Returns the reference of all metrics as Markdown.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    for section in SECTIONS {
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n\n", section.title);
        write_section(&mut page, section.families);
    }
    page
}

/// Writes what all families of a section share as a sentence, and what differs as columns.
fn write_section(page: &mut String, families: &[Family]) {
    let kind = common(families, |family| family.kind.name());
    let shown = common(families, |family| family.shown);
    let shared = shared_labels(families);
    let has_more_labels = families.iter().any(|family| family.labels.len() > shared.len());
    let about = [
        kind.map(|kind| format!("Type: {kind}.")),
        (!shared.is_empty()).then(|| format!("Labels: {}.", code(&shared))),
        shown.filter(|shown| !shown.is_empty()).map(|shown| format!("Shown {shown}.")),
    ];
    let about: Vec<String> = about.into_iter().flatten().collect();
    if !about.is_empty() {
        let _ = write!(page, "{}\n\n", about.join(" "));
    }
    let is_column = [true, kind.is_none(), has_more_labels, true, shown.is_none()];
    let more = if shared.is_empty() { "labels" } else { "more labels" };
    write_row(page, is_column, ["name", "type", more, "what it says", "shown"]);
    let columns = is_column.iter().filter(|is_column| **is_column).count();
    let _ = writeln!(page, "|{}", "---|".repeat(columns));
    for family in families {
        let more: Vec<&str> =
            family.labels.iter().filter(|label| !shared.contains(label)).copied().collect();
        let shown = if family.shown.is_empty() { "always" } else { family.shown };
        let (name, more) = (format!("`{}`", family.name), code(&more));
        write_row(page, is_column, [&name, family.kind.name(), &more, family.help, shown]);
    }
}

fn write_row(page: &mut String, is_column: [bool; 5], cells: [&str; 5]) {
    let cells = cells.into_iter().zip(is_column).filter(|(_, is_column)| *is_column);
    let cells: Vec<&str> = cells.map(|(cell, _)| cell).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

/// Returns the labels that all families have.
fn shared_labels(families: &[Family]) -> Vec<&'static str> {
    let first = families.first().map_or(&[] as &[&str], |family| family.labels);
    let is_shared = |label: &&&str| families.iter().all(|family| family.labels.contains(label));
    first.iter().filter(is_shared).copied().collect()
}

fn code(labels: &[&str]) -> String {
    labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ")
}

/// Returns what is the same for all families, if it is.
fn common<T: PartialEq>(families: &[Family], of: impl Fn(&Family) -> T) -> Option<T> {
    let mut all = families.iter().map(of);
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

//! The times of each model.

use galatea_terminal_text as printing;

use super::{counted, folded, padded};
use crate::{
    duration::duration,
    report::{ModelReport, Report, SpanReport},
};

/// Columns of the names of spans, of a time and of a share.
const NAME: usize = 9;
const TIME: usize = 10;
const SHARE: usize = 9;
/// Most columns of a bar.
const MOST_BAR: usize = 50;

pub(super) fn write(text: &mut String, report: &Report, width: usize) {
    for model in &report.models {
        text.push('\n');
        text.push_str(&folded(&heading(model), width));
        if model.request_count == model.unfinished_count {
            continue;
        }
        let cells = ["", "p50", "p99", "share"];
        line(text, cells.map(str::to_owned), "");
        for span in &model.spans {
            line(text, cells_of(span), &bar(span, width));
        }
        let total = [model.total.p50_ns, model.total.p99_ns].map(|ns| duration(ns as f64));
        let [p50, p99] = total;
        line(text, ["total".to_owned(), p50, p99, String::new()], "");
    }
}

/// Returns the name of the model as people read it.
pub(super) fn name(name: Option<&str>, version: &str) -> String {
    let name = name.map_or("(no model)".to_owned(), printing::line);
    match version {
        "" => name,
        version => format!("{name}, version {}", printing::line(version)),
    }
}

fn heading(model: &ModelReport) -> String {
    let mut heading = format!(
        "{}: {}",
        name(model.name.as_deref(), &model.version),
        counted(model.request_count, "request")
    );
    for (count, what) in [
        (model.no_response_count, "without a response"),
        (model.not_queued_count, "refused before the queue"),
        (model.unfinished_count, "unfinished and not counted in the times"),
    ] {
        if count > 0 {
            heading.push_str(&format!(", {count} {what}"));
        }
    }
    heading
}

fn cells_of(span: &SpanReport) -> [String; 4] {
    let time = |ns: u64| duration(ns as f64);
    [
        span.span.name().to_owned(),
        time(span.times.p50_ns),
        time(span.times.p99_ns),
        format!("{:.1} %", span.share * 100.0),
    ]
}

fn bar(span: &SpanReport, width: usize) -> String {
    let room = width.saturating_sub(2 + NAME + 2 * TIME + SHARE + 2).min(MOST_BAR);
    "█".repeat((span.share * room as f64).round() as usize)
}

fn line(text: &mut String, cells: [String; 4], bar: &str) {
    let [name, p50, p99, share] = cells;
    let line = format!(
        "  {}{}{}{}  {bar}",
        padded(&name, NAME, false),
        padded(&p50, TIME, true),
        padded(&p99, TIME, true),
        padded(&share, SHARE, true)
    );
    text.push_str(line.trim_end());
    text.push('\n');
}

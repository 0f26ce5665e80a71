//! One model in detail: its recent and total figures, phase by phase, and the sizes of its batches.

use ratatui::{style::Stylize, text::Line};

use super::{
    colors::{GOOD, WARNING},
    columns::{Column, amount, duration},
    counters::Counters,
    page::ModelKey,
    row::Row,
};
use crate::printing;

/// Most batch sizes that are shown.
const MOST_BATCHES: usize = 16;

pub(crate) fn lines(key: &ModelKey, row: Option<&Row>, width: usize) -> Vec<Line<'static>> {
    let title = format!("{} version {}", printing::line(&key.name), printing::line(&key.version));
    let mut lines = vec![title.bold().into()];
    let Some(row) = row else {
        lines.push("The server no longer has this model.".fg(WARNING).into());
        return lines;
    };
    lines.extend(state(row));
    let quantiles = row.quantiles.source().unwrap_or("not known, the server has none");
    lines.push(pair(
        "p50, p99",
        &format!("{}, {} ({quantiles})", Column::P50.cell(row), Column::P99.cell(row),),
    ));
    for column in [Column::Pending, Column::Busy, Column::Batch] {
        lines.push(pair(column.head(), &column.cell(row)));
    }
    lines.extend(figures(row));
    lines.extend(batches(row, width));
    lines
}

fn pair(name: &str, text: &str) -> Line<'static> {
    vec![format!("{name:<11}").dim(), text.to_owned().into()].into()
}

fn state(row: &Row) -> Vec<Line<'static>> {
    let mut lines = vec![pair("state", &Column::State.cell(row))];
    if !row.reason.is_empty() {
        lines.push(pair("reason", &printing::line(&row.reason)));
    }
    if let (Some(working), Some(all)) = (row.page.instances_working, row.page.instances) {
        lines.push(pair("instances", &format!("{working:.0} of {all:.0} work")));
    }
    lines
}

/// Returns the same figures for the last interval and for the whole time.
fn figures(row: &Row) -> Vec<Line<'static>> {
    let recent = row.recent.as_ref().map(|(counters, seconds)| (counters, *seconds));
    let head = format!("{:<11}{:>12}{:>12}{:>12}", "", "per second", "average", "since load");
    let mut lines = vec![Line::default(), head.reversed().into()];
    let line = |name: &str,
                count: Option<fn(&Counters) -> u64>,
                time: Option<fn(&Counters) -> u64>| {
        let rate = recent.and_then(|(counters, seconds)| Some(count?(counters) as f64 / seconds));
        let rate = rate.map_or_else(String::new, |rate| amount(rate, 1));
        let average = time.and_then(|time| row.average(time));
        let average = average.map_or_else(String::new, duration);
        let total = row.total.as_ref().map_or_else(String::new, |total| match (count, time) {
            (Some(count), _) => count(total).to_string(),
            (None, Some(time)) => duration(time(total) as f64),
            (None, None) => String::new(),
        });
        Line::from(format!("{name:<11}{rate:>12}{average:>12}{total:>12}"))
    };
    lines.push(line("successful", Some(|c| c.success), Some(|c| c.request_ns)));
    lines.push(line("failed", Some(|c| c.fail), None));
    lines.push(line("inferences", Some(|c| c.inferences), None));
    lines.push(line("executions", Some(|c| c.executions), None));
    lines.push(line("queue", None, Some(|c| c.queue_ns)));
    lines.push(line("input", None, Some(|c| c.input_ns)));
    lines.push(line("infer", None, Some(|c| c.infer_ns)));
    lines.push(line("output", None, Some(|c| c.output_ns)));
    if row.total.as_ref().is_some_and(|total| total.cache_hits + total.cache_misses > 0) {
        lines.push(line("cache hits", Some(|c| c.cache_hits), None));
        lines.push(line("no hits", Some(|c| c.cache_misses), None));
    }
    lines
}

fn batches(row: &Row, width: usize) -> Vec<Line<'static>> {
    let sizes = row.total.as_ref().map(|total| &total.batches).filter(|sizes| !sizes.is_empty());
    let Some(sizes) = sizes else { return Vec::new() };
    let most = sizes.values().copied().max().unwrap_or_default().max(1);
    let mut lines = vec![Line::default(), "Batch sizes since load".bold().into()];
    let bar = |count: u64| {
        let room = width.saturating_sub(24).min(60) as f64;
        "█".repeat((count as f64 / most as f64 * room).round() as usize)
    };
    let line = |(size, count): (&u64, &u64)| {
        Line::from(vec![format!("{size:>8} {count:>12} ").into(), bar(*count).fg(GOOD)])
    };
    lines.extend(sizes.iter().take(MOST_BATCHES).map(line));
    if sizes.len() > MOST_BATCHES {
        lines.push(format!("… {} more", sizes.len() - MOST_BATCHES).dim().into());
    }
    lines
}

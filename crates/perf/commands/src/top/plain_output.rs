//! Output without a terminal: a table, or a line of JSON, for each interval.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{
    columns::Column,
    row::{Observation, Row},
};
use crate::printing;

/// Returns the columns that fit into a terminal's `width`, and a note about the others.
pub(crate) fn table(
    observation: &Observation,
    rows: &[&Row],
    sort: Column,
    width: Option<usize>,
) -> String {
    let cells = |shown: &[Column]| -> Vec<Vec<String>> {
        let heads = shown.iter().map(|column| column.head().to_owned()).collect();
        let rows = rows.iter().map(|row| shown.iter().map(|column| column.cell(row)).collect());
        [heads].into_iter().chain(rows).collect()
    };
    let shown = match width {
        Some(width) => fitting(width, rows, sort, &cells),
        None => Column::ALL.to_vec(),
    };
    let mut text = printing::table(&cells(&shown), width);
    let is_hidden = |column: &&Column| !shown.contains(column);
    let hidden: Vec<&str> =
        Column::ALL.iter().filter(is_hidden).map(|column| column.head()).collect();
    let narrow = (!hidden.is_empty())
        .then(|| format!("too narrow for {}; --json prints all", hidden.join(", ")));
    for note in observation.notes.iter().chain(&narrow) {
        let note = printing::line(note);
        for line in printing::folded(&note, width.map_or(usize::MAX, |width| width.max(12) - 2)) {
            text.push_str(&format!("# {line}\n"));
        }
    }
    text
}

/// Returns the columns that fit. Here two blanks are between columns; [`Column::fitting`] counts one, as on the screen.
fn fitting(
    width: usize,
    rows: &[&Row],
    sort: Column,
    cells: &dyn Fn(&[Column]) -> Vec<Vec<String>>,
) -> Vec<Column> {
    let mut shown = Vec::new();
    for room in (width.saturating_sub(Column::ALL.len())..=width).rev() {
        shown = Column::fitting(room, rows, sort).into_iter().map(|(column, _)| column).collect();
        let table = printing::table(&cells(&shown), None);
        if table.lines().all(|line| printing::columns(line) <= width) {
            break;
        }
    }
    shown
}

pub(crate) fn json(observation: &Observation, rows: &[&Row]) -> String {
    let machine = &observation.machine;
    let gpus = machine.gpus.iter().map(|(uuid, gpu)| {
        json!({
            "uuid": uuid, "utilization": gpu.utilization, "memory_used_bytes": gpu.memory_used,
            "memory_total_bytes": gpu.memory_total, "power_watts": gpu.power_watts,
        })
    });
    let value = json!({
        "time": now(),
        "server": observation.server,
        "ready": observation.is_ready,
        "interval_s": observation.seconds,
        "cpu_utilization": machine.cpu,
        "memory_used_bytes": machine.memory_used,
        "memory_total_bytes": machine.memory_total,
        "gpus": gpus.collect::<Vec<_>>(),
        "models": rows.iter().map(|row| model(row)).collect::<Vec<_>>(),
        "notes": observation.notes,
    });
    printing::json(&format!("{value}\n"))
}

/// Returns the line that is printed while the server does not answer.
pub(crate) fn away_json(reason: &str) -> String {
    printing::json(&format!("{}\n", json!({"time": now(), "error": reason})))
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn model(row: &Row) -> Value {
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    json!({
        "name": row.key.name, "version": row.key.version,
        "state": row.state, "reason": row.reason,
        "requests_per_s": row.requests(), "failed_per_s": row.failed(),
        "inferences_per_s": row.inferences(), "batch_size": row.batch_size(),
        "pending": row.page.pending, "busy_instances": row.busy(), "instances": row.page.instances,
        "queue_us": us(row.queue()), "compute_us": us(row.compute()),
        "compute_input_us": us(row.average(|c| c.input_ns)),
        "compute_infer_us": us(row.average(|c| c.infer_ns)),
        "compute_output_us": us(row.average(|c| c.output_ns)),
        "latency_us": us(row.latency()),
        "p50_us": us(Column::P50.number(row)), "p99_us": us(Column::P99.number(row)),
        "quantiles_from": row.quantiles.source(),
        "total": row.total.as_ref().map(|total| json!({
            "success": total.success, "failed": total.fail,
            "inferences": total.inferences, "executions": total.executions,
        })),
    })
}

//! What is printed where the output is no terminal: a table, or a line of JSON, for each interval.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{
    columns::Column,
    row::{Observation, Row},
};
use crate::printing;

pub(crate) fn table(observation: &Observation, rows: &[&Row]) -> String {
    let heads = Column::ALL.iter().map(|column| column.head().to_owned());
    let mut cells: Vec<Vec<String>> = vec![heads.collect()];
    cells.extend(rows.iter().map(|row| Column::ALL.iter().map(|c| c.cell(row)).collect()));
    let mut text = printing::table(&cells);
    for note in &observation.notes {
        text.push_str(&format!("# {}\n", printing::line(note)));
    }
    text
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

/// What is printed while the server does not answer.
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

//! The CSV table, as perf_analyzer 2.50 writes it (`-f`, `--verbose-csv`): one row for each point, by rising throughput.
//! Times are whole microseconds. model_analyzer reads it by column name.
//!
//! Each step of an ensemble gets a table of its own, in a file next to the first.

mod cells;

use std::path::{Path, PathBuf};

use galatea_perf_types::{
    model::ModelInfo,
    settings::{Load, Settings},
    status::{GpuMetrics, LoadPoint, PerfStatus, ServerStats},
};

use crate::text::{CallMicros, general};

use self::cells::{Cell, average_ns, cell, gpu, micros, server};

/// Files to write, and lines for stderr (one for each row in which the server accounts for more
/// time than the client waited).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Paths and contents of the files.
    pub files: Vec<(PathBuf, String)>,
    /// Warnings without a newline.
    pub warnings: Vec<String>,
}

/// Makes the tables of a run; no files without `settings.csv_file` or without points.
pub fn write(points: &[PerfStatus], settings: &Settings, model: &ModelInfo) -> Tables {
    let mut tables = Tables::default();
    let (Some(file), Some(first)) = (&settings.csv_file, points.first()) else { return tables };
    if matches!(settings.load, Load::PeriodicConcurrency { .. }) {
        return tables;
    }
    let mut rows: Vec<&PerfStatus> = points.iter().collect();
    rows.sort_by(|a, b| a.client.infer_per_sec.total_cmp(&b.client.infer_per_sec));
    let columns = Columns {
        settings,
        model,
        has_server: first.server.is_some(),
        has_stability: points.iter().any(|status| !status.is_stable),
    };
    let warnings = &mut tables.warnings;
    let cells: Vec<_> = rows.iter().map(|status| columns.row(status, warnings)).collect();
    tables.files.push((file.clone(), table(&cells)));
    let steps =
        rows.first().and_then(|status| status.server.as_ref()).map(|server| &server.composing);
    for step in steps.into_iter().flat_map(|composing| composing.keys()) {
        let cells = rows.iter().filter_map(|status| step_row(step, status, model, warnings));
        tables.files.push((step_file(file, step), table(&cells.collect::<Vec<_>>())));
    }
    tables
}

/// The columns of the table.
struct Columns<'a> {
    settings: &'a Settings,
    model: &'a ModelInfo,
    has_server: bool,
    /// Set only if a point is not stable, so that other tables equal those of perf_analyzer.
    has_stability: bool,
}

impl Columns<'_> {
    fn row(&self, status: &PerfStatus, warnings: &mut Vec<String>) -> Vec<Cell> {
        let client = &status.client;
        let mut row = vec![load(status), cell("Inferences/Second", general(client.infer_per_sec))];
        if self.model.decoupled {
            row.push(cell("Response Throughput", general(client.responses_per_sec)));
        }
        row.push(micros("Client Send", client.avg_send_time_ns));
        if self.has_server {
            let counters = status.server.as_ref().map(|server| server.counters).unwrap_or_default();
            let wait = client
                .avg_latency_ns
                .saturating_sub(client.avg_send_time_ns)
                .saturating_sub(client.avg_receive_time_ns);
            row.extend(server(&counters, wait, self.model.response_cache, warnings));
        }
        row.push(micros("Client Recv", client.avg_receive_time_ns));
        let percentiles = client.percentile_latency_ns.iter();
        row.extend(percentiles.map(|(percent, ns)| micros(&format!("p{percent} latency"), *ns)));
        if self.settings.verbose_csv {
            self.add_verbose(status, &mut row);
        }
        if self.has_stability {
            row.push(cell("Stable", u8::from(status.is_stable)));
        }
        row
    }

    fn add_verbose(&self, status: &PerfStatus, row: &mut Vec<Cell>) {
        let client = &status.client;
        if self.settings.percentile.is_none() {
            row.push(micros("Avg latency", client.avg_latency_ns));
        }
        let call = CallMicros::of(client);
        row.push(cell("request/response", call.send + call.receive));
        row.push(cell("response wait", call.wait));
        if self.settings.metrics.is_some() {
            let none = GpuMetrics::default();
            row.extend(gpu(status.metrics.first().unwrap_or(&none)));
        }
    }
}

/// Makes a row of a step's table. A step has no client, so its overhead is in the column of the network's time.
fn step_row(
    step: &(String, String),
    status: &PerfStatus,
    model: &ModelInfo,
    warnings: &mut Vec<String>,
) -> Option<Vec<Cell>> {
    let ensemble = status.server.as_ref()?;
    let stats = ensemble.composing.get(step)?;
    let throughput = step_share(stats, ensemble) * status.client.infer_per_sec;
    let mut row = vec![load(status), cell("Inferences/Second", general(throughput))];
    row.push(cell("Client Send", 0));
    let total = average_ns(stats.counters.success);
    row.extend(server(&stats.counters, total, model.response_cache, warnings));
    row.push(cell("Client Recv", 0));
    Some(row)
}

/// Returns the number of the step's requests for each request of the ensemble.
fn step_share(step: &ServerStats, ensemble: &ServerStats) -> f64 {
    match ensemble.counters.success.count {
        0 => 0.0,
        count => step.counters.success.count as f64 / count as f64,
    }
}

/// Returns `{name}_v{version}.{file}`, in the folder of `file`.
fn step_file(file: &Path, (name, version): &(String, String)) -> PathBuf {
    let base = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}_v{version}.{base}"))
}

fn load(status: &PerfStatus) -> Cell {
    match status.load {
        LoadPoint::Concurrency(concurrency) => cell("Concurrency", concurrency),
        LoadPoint::RequestRate(rate) => cell("Request Rate", general(rate)),
    }
}

/// Writes the names as the first row, and the values of all rows.
fn table(rows: &[Vec<Cell>]) -> String {
    let line = |cells: Vec<&str>| cells.join(",") + "\n";
    let names = rows.iter().take(1).map(|row| row.iter().map(|cell| &*cell.0).collect());
    let values = rows.iter().map(|row| row.iter().map(|cell| &*cell.1).collect());
    names.chain(values).map(line).collect()
}

#[cfg(test)]
mod tests;

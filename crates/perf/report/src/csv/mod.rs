//! The table other programs read, as perf_analyzer 2.50 writes it (`-f`, `--verbose-csv`): one row for each
//! point, by rising throughput. Times are whole microseconds. model_analyzer reads it by column name.
//!
//! Each step of an ensemble gets a table of its own, in a file beside the first.

mod cells;

use std::path::{Path, PathBuf};

use galatea_perf_types::{
    model::ModelInfo,
    settings::{Load, Settings},
    status::{GpuMetrics, LoadPoint, PerfStatus, ServerStats},
};

use crate::text::{CallMicros, general};

use self::cells::ServerCells;

/// What to say when the server accounts for more time than the client waited.
pub const UNACCOUNTED: &str = "Server average accounted time was larger than client average wait time due to small sample size. Increase the measurement interval with `--measurement-interval`.";

/// Files to write, and lines for stderr (one for each row in which [`UNACCOUNTED`] holds).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Paths and contents.
    pub files: Vec<(PathBuf, String)>,
    /// Without a newline.
    pub warnings: Vec<String>,
}

/// The tables of a run; no files without `settings.csv_file` or without points.
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
    let mut table = columns.header(first);
    for status in &rows {
        table.push_str(&columns.row(status, &mut tables.warnings));
    }
    tables.files.push((file.clone(), table));
    let steps =
        rows.first().and_then(|status| status.server.as_ref()).map(|server| &server.composing);
    for step in steps.into_iter().flat_map(|composing| composing.keys()) {
        let table = step_table(step, &rows, model, &mut tables.warnings);
        tables.files.push((step_file(file, step), table));
    }
    tables
}

/// Which columns there are.
struct Columns<'a> {
    settings: &'a Settings,
    model: &'a ModelInfo,
    has_server: bool,
    /// Only where a point is not stable, so that other tables are those of perf_analyzer.
    has_stability: bool,
}

impl Columns<'_> {
    fn header(&self, first: &PerfStatus) -> String {
        let mut names = vec![load_column(first).to_owned(), "Inferences/Second".to_owned()];
        if self.model.decoupled {
            names.push("Response Throughput".to_owned());
        }
        names.push("Client Send".to_owned());
        if self.has_server {
            names.extend(ServerCells::names(self.model.response_cache).map(str::to_owned));
        }
        names.push("Client Recv".to_owned());
        let percentiles = first.client.percentile_latency_ns.keys();
        names.extend(percentiles.map(|percentile| format!("p{percentile} latency")));
        if self.settings.verbose_csv {
            names.extend(self.verbose_names().map(str::to_owned));
        }
        if self.has_stability {
            names.push("Stable".to_owned());
        }
        line(names)
    }

    fn verbose_names(&self) -> impl Iterator<Item = &'static str> {
        let average = self.settings.percentile.is_none().then_some("Avg latency");
        let gpu = self.settings.metrics.is_some().then_some(GPU_COLUMNS);
        average
            .into_iter()
            .chain(["request/response", "response wait"])
            .chain(gpu.into_iter().flatten())
    }

    fn row(&self, status: &PerfStatus, warnings: &mut Vec<String>) -> String {
        let client = &status.client;
        let mut cells = vec![load_value(status), general(client.infer_per_sec)];
        if self.model.decoupled {
            cells.push(general(client.responses_per_sec));
        }
        cells.push((client.avg_send_time_ns / 1000).to_string());
        if self.has_server {
            let server = status.server.as_ref().map(|server| server.counters).unwrap_or_default();
            let wait = client
                .avg_latency_ns
                .saturating_sub(client.avg_send_time_ns)
                .saturating_sub(client.avg_receive_time_ns);
            let server = ServerCells::new(&server, wait);
            warn_unaccounted(&server, warnings);
            cells.extend(server.cells(self.model.response_cache));
        }
        cells.push((client.avg_receive_time_ns / 1000).to_string());
        cells.extend(client.percentile_latency_ns.values().map(|ns| (ns / 1000).to_string()));
        if self.settings.verbose_csv {
            self.verbose_cells(status, &mut cells);
        }
        if self.has_stability {
            cells.push(u8::from(status.is_stable).to_string());
        }
        line(cells)
    }

    fn verbose_cells(&self, status: &PerfStatus, cells: &mut Vec<String>) {
        let client = &status.client;
        if self.settings.percentile.is_none() {
            cells.push((client.avg_latency_ns / 1000).to_string());
        }
        let call = CallMicros::of(client);
        cells.extend([(call.send + call.receive).to_string(), call.wait.to_string()]);
        if self.settings.metrics.is_some() {
            let none = GpuMetrics::default();
            cells.extend(cells::gpu(status.metrics.first().unwrap_or(&none)));
        }
    }
}

const GPU_COLUMNS: [&str; 4] =
    ["Avg GPU Utilization", "Avg GPU Power Usage", "Max GPU Memory Usage", "Total GPU Memory"];

/// One step's table. A step has no client, so its overhead stands where the network's time would.
fn step_table(
    step: &(String, String),
    rows: &[&PerfStatus],
    model: &ModelInfo,
    warnings: &mut Vec<String>,
) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let mut names = vec![load_column(first), "Inferences/Second", "Client Send"];
    names.extend(ServerCells::names(model.response_cache));
    names.push("Client Recv");
    let mut table = line(names);
    for status in rows {
        let Some(server) = &status.server else { continue };
        let Some(stats) = server.composing.get(step) else { continue };
        let counters = &stats.counters;
        let total = cells::average(counters.cumulative_time_ns, counters.success_count);
        let parts = ServerCells::new(counters, total);
        warn_unaccounted(&parts, warnings);
        let throughput = step_share(stats, server) * status.client.infer_per_sec;
        let mut cells = vec![load_value(status), general(throughput), "0".to_owned()];
        cells.extend(parts.cells(model.response_cache));
        cells.push("0".to_owned());
        table.push_str(&line(cells));
    }
    table
}

/// Requests of a step for each request of the ensemble.
fn step_share(step: &ServerStats, ensemble: &ServerStats) -> f64 {
    match ensemble.counters.success_count {
        0 => 0.0,
        count => step.counters.success_count as f64 / count as f64,
    }
}

/// `{name}_v{version}.{file}`, in the folder of `file`.
fn step_file(file: &Path, (name, version): &(String, String)) -> PathBuf {
    let base = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}_v{version}.{base}"))
}

fn warn_unaccounted(server: &ServerCells, warnings: &mut Vec<String>) {
    if server.rest_ns == 0 {
        warnings.push(UNACCOUNTED.to_owned());
    }
}

fn load_column(status: &PerfStatus) -> &'static str {
    match status.load {
        LoadPoint::Concurrency(_) => "Concurrency",
        LoadPoint::RequestRate(_) => "Request Rate",
    }
}

fn load_value(status: &PerfStatus) -> String {
    match status.load {
        LoadPoint::Concurrency(concurrency) => concurrency.to_string(),
        LoadPoint::RequestRate(rate) => general(rate),
    }
}

fn line<S: AsRef<str>>(cells: Vec<S>) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    cells.join(",") + "\n"
}

#[cfg(test)]
mod tests;

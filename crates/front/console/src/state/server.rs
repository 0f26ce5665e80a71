//! The state of the server itself.

use std::{num::NonZero, thread, time::Duration};

use galatea_engine::{ControlMode, Engine};
use galatea_gpu::GpuMetrics;
use galatea_telemetry::metrics::CpuMetrics;
use galatea_types::product;
use serde::Serialize;

use crate::sources::ConsoleSources;

#[derive(Debug, Serialize)]
pub(crate) struct ServerRow {
    name: String,
    product: &'static str,
    contract: &'static str,
    uptime_s: f64,
    state: &'static str,
    live: bool,
    ready: bool,
    may_load: bool,
    may_load_reason: String,
    /// The load of the server: at 1 it is full, above it requests queue. `None` if no model has instances.
    load: Option<f64>,
    cpu: Option<Cpu>,
    memory: Memory,
    connections: Connections,
    gpus: Vec<Gpu>,
    watchers: usize,
    /// The number of repositories that did not answer last time. Not every viewer may know their places.
    repositories_away: usize,
    restricted: Vec<&'static str>,
    /// The number of traced requests that were kept so far: a page with traces then asks for the new ones.
    traced: u64,
}

/// The use of the machine's processors and memory.
#[derive(Debug, Serialize)]
struct Cpu {
    utilization: f64,
    cores: usize,
    memory_used_bytes: u64,
    memory_total_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Memory {
    resident_bytes: Option<usize>,
    budget_limit_bytes: Option<usize>,
    budget_used_bytes: usize,
    budget_refused: usize,
}

/// The connections of all front ends, which share their limits.
#[derive(Debug, Serialize)]
struct Connections {
    open: usize,
    limit: usize,
    refused: u64,
}

#[derive(Debug, Serialize)]
struct Gpu {
    uuid: String,
    utilization: Option<f64>,
    memory_used_bytes: Option<u64>,
    memory_total_bytes: Option<u64>,
    power_watts: Option<f64>,
    power_limit_watts: Option<f64>,
    energy_joules: Option<f64>,
}

impl ServerRow {
    /// Returns the current state.
    pub fn of(
        engine: &Engine,
        sources: &ConsoleSources,
        uptime: Duration,
        watchers: usize,
    ) -> Self {
        let connections = &sources.connections;
        let (live, ready) = (engine.is_live(), engine.is_ready());
        let budget = &engine.options().memory;
        Self {
            name: engine.options().server_id.clone(),
            product: product::NAME_AND_VERSION,
            contract: engine.version(),
            uptime_s: (uptime.as_secs_f64() * 10.0).round() / 10.0,
            state: stage(engine, live, ready),
            live,
            ready,
            may_load: engine.check_control().is_ok(),
            may_load_reason: why_not_to_load(engine),
            load: engine.load(),
            cpu: engine.cpu_metrics().map(Cpu::from),
            memory: Memory {
                resident_bytes: galatea_process_memory::resident(),
                budget_limit_bytes: Some(budget.limit()).filter(|most| *most < isize::MAX as usize),
                budget_used_bytes: budget.used(),
                budget_refused: budget.refused(),
            },
            connections: Connections {
                open: connections.open(),
                limit: connections.settings().max_connections,
                refused: connections.counts().refused,
            },
            gpus: engine.gpu_metrics().into_iter().map(Gpu::from).collect(),
            watchers,
            repositories_away: engine.repository_problems().len(),
            restricted: sources.restricted.clone(),
            traced: sources.traces.as_ref().map_or(0, |traces| traces.count()),
        }
    }
}

/// Returns the reason why clients may not load and unload models; empty if they may.
fn why_not_to_load(engine: &Engine) -> String {
    const ADVICE: &str =
        "Start the server with `--model-control-mode=explicit` to load and unload models.";
    match (engine.check_control(), engine.options().control_mode) {
        (Ok(()), _) => String::new(),
        (Err(error), ControlMode::Explicit) => error.message().to_owned(),
        (_, ControlMode::None) => format!("Loading is off. {ADVICE}"),
        (_, ControlMode::Poll) => {
            format!("Loading is off: models follow the repository as it changes. {ADVICE}")
        }
    }
}

fn stage(engine: &Engine, live: bool, ready: bool) -> &'static str {
    match (live, ready) {
        (false, _) => "exiting",
        _ if engine.availability().is_leaving() => "draining",
        _ if engine.availability().is_starting() => "starting",
        (true, true) => "ready",
        (true, false) => "not_ready",
    }
}

impl From<CpuMetrics> for Cpu {
    fn from(cpu: CpuMetrics) -> Self {
        Self {
            utilization: (cpu.utilization * 1000.0).round() / 1000.0,
            cores: thread::available_parallelism().map_or(1, NonZero::get),
            memory_used_bytes: cpu.memory_used_bytes,
            memory_total_bytes: cpu.memory_total_bytes,
        }
    }
}

impl From<GpuMetrics> for Gpu {
    fn from(gpu: GpuMetrics) -> Self {
        Self {
            uuid: gpu.uuid,
            utilization: gpu.utilization,
            memory_used_bytes: gpu.memory_used_bytes,
            memory_total_bytes: gpu.memory_total_bytes,
            power_watts: gpu.power_usage_watts,
            power_limit_watts: gpu.power_limit_watts,
            energy_joules: gpu.energy_joules,
        }
    }
}

//! All metric families as Prometheus text.
//!
//! Names, help texts and the order of the families are Triton's: dashboards and their tests compare them.
//! A family is announced even while no model has a value for it. Families that Triton does not have come last. All families are
//! in one table, [`families`].

mod build;
mod cache;
mod figures;
mod gpu;
mod memory;
mod models;
mod open_metrics;
mod process;
mod program;
mod reference;
mod text;

pub(crate) use self::text::{Number, push_escaped};
pub use self::{
    cache::CacheMetrics,
    figures::{FigureSource, Figures, VersionLabels},
    memory::{MemoryMetrics, SequenceMemoryMetrics},
    models::{InstanceCounts, ModelMetrics},
    open_metrics::to_open_metrics,
    process::{CpuMetrics, MetricsOptions, ProcessMetrics, ProcessSampler},
    reference::reference,
};
use self::{models::Models, text::Text};
use crate::ServerCounts;
use crate::families::{
    self, CPU_MEMORY_TOTAL, CPU_MEMORY_USED, CPU_UTILIZATION, POOL_TOTAL, POOL_USED,
};

/// Returns the whole answer to `/metrics`: families of the models in the order of `models`, then of the process, then those that
/// only this server has.
pub fn render(models: &[ModelMetrics<'_>], process: &ProcessMetrics, figures: &Figures) -> String {
    let mut text = Text::default();
    let models = Models::new(models);
    models.write_counters(&mut text, process.has_counter_latencies);
    gpu::write_counters(&mut text, &process.gpus);
    models.write_gauges(&mut text);
    write_process(&mut text, process);
    if let Some(cache) = &process.cache {
        cache::write(&mut text, cache);
    }
    models.write_distributions(&mut text);
    models.write_own(&mut text);
    memory::write(&mut text, process.memory);
    figures.write(&mut text);
    program::write(&mut text);
    build::write(&mut text);
    text.finish()
}

/// Returns the answer to `/metrics?scope=server`: the figures of the server without those of its models. It is short, for readers
/// that ask many times a second.
pub fn render_server(counts: ServerCounts, memory: MemoryMetrics, figures: &Figures) -> String {
    let mut text = Text::default();
    models::write_counts(&mut text, counts);
    memory::write(&mut text, memory);
    figures.write(&mut text);
    program::write(&mut text);
    build::write(&mut text);
    text.finish()
}

/// Returns whether a sample of one of the server's families can have this name. No other family may use it.
pub(crate) fn is_server_family(name: &str) -> bool {
    families::all().any(|family| family.has_sample(name))
}

/// Returns whether this is a family of the response cache in memory.
pub(crate) fn is_cache_family(name: &str) -> bool {
    families::CACHE.iter().any(|family| family.has_sample(name))
}

fn write_process(text: &mut Text, process: &ProcessMetrics) {
    text.single(&POOL_TOTAL, process.pinned_pool_total_bytes);
    text.single(&POOL_USED, process.pinned_pool_used_bytes);
    gpu::write_gauges(text, &process.gpus);
    let Some(cpu) = &process.cpu else { return };
    text.single(&CPU_UTILIZATION, cpu.utilization);
    text.single(&CPU_MEMORY_TOTAL, cpu.memory_total_bytes);
    text.single(&CPU_MEMORY_USED, cpu.memory_used_bytes);
}

#[cfg(test)]
mod tests;

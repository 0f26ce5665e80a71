//! All metrics of the server as one text.

mod distributions;

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use galatea_gpu::SharedGpuMetrics;
use galatea_response_cache::ResponseCache;
use galatea_scheduler::SequenceMemory;
use galatea_telemetry::{
    CustomMetrics, DistributionsSnapshot, StatisticsSnapshot,
    metrics::{
        self, CpuMetrics, FigureSource, Figures, InstanceCounts, MemoryMetrics, ModelMetrics,
        ProcessMetrics, ProcessSampler,
    },
};
use galatea_types::{Clock, LockExt, MemoryBudget};

pub(crate) use self::distributions::ModelDistributions;
use crate::{options::EngineOptions, served_model::ServedModel};

/// What is measured besides the requests of each model.
pub(crate) struct ServerMetrics {
    process: ProcessSampler,
    gpus: SharedGpuMetrics,
    memory: Arc<MemoryBudget>,
    sequence_memory: Arc<SequenceMemory>,
    cache: Option<Arc<dyn ResponseCache>>,
    sources: Mutex<Vec<FigureSource>>,
    clock: Clock,
    /// Families that models define themselves.
    pub custom: Arc<CustomMetrics>,
}

impl ServerMetrics {
    pub fn new(options: &EngineOptions) -> Self {
        let (process, sources) = (ProcessSampler::new(options.metrics.clone()), Mutex::default());
        let (gpus, memory) = (options.gpus.latest.clone(), options.memory.clone());
        let (cache, clock) = (options.response_cache.clone(), options.clock.clone());
        let sequence_memory = options.execution.sequence_memory.clone();
        Self {
            clock,
            process,
            gpus,
            memory,
            sequence_memory,
            cache,
            sources,
            custom: Arc::default(),
        }
    }

    /// CPU and memory of the machine; `None`: they are not asked for, or not known.
    pub fn cpu(&self) -> Option<CpuMetrics> {
        self.process.sample().cpu
    }

    /// Adds figures of another part of the server.
    pub fn add_figures(&self, source: FigureSource) {
        self.sources.lock_unpoisoned().push(source);
    }

    /// All metric families in Prometheus text form. `add_own`: gives the figures of the engine itself.
    pub fn render(
        &self,
        models: &[Arc<ServedModel>],
        add_own: impl FnOnce(&mut Figures),
    ) -> String {
        let counted: Vec<_> = models.iter().map(|m| m.statistics().scrape()).collect();
        let now = self.clock.now();
        let rows: Vec<ModelMetrics<'_>> =
            models.iter().zip(&counted).map(|(model, counted)| row(model, counted, now)).collect();
        let process = ProcessMetrics {
            gpus: self.gpus.latest(),
            memory: MemoryMetrics::new(&self.memory, self.sequence_memory.metrics()),
            cache: self.cache.as_ref().and_then(|cache| cache.metrics()),
            ..self.process.sample()
        };
        let mut figures = Figures::default();
        add_own(&mut figures);
        self.sources.lock_unpoisoned().iter().for_each(|source| source(&mut figures));
        let mut text = metrics::render(&rows, &process, &figures);
        self.custom.render_into(&mut text);
        text
    }
}

fn row<'a>(
    model: &'a ServedModel,
    (statistics, distributions): &'a (StatisticsSnapshot, DistributionsSnapshot),
    now: Instant,
) -> ModelMetrics<'a> {
    let counts = model.instance_counts();
    ModelMetrics {
        namespace: &model.id().namespace,
        name: model.config().name(),
        version: model.version(),
        tags: model.config().metric_tags(),
        statistics,
        distributions,
        load_duration: model.load_duration(),
        in_flight: model.in_flight(),
        instances: counts.map(|(all, working)| InstanceCounts { all, working }),
        batch_delay: model.learned_batch_delay(),
        load: model.load(now),
        has_cache: model.is_cached(),
    }
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::{CustomMetricKind, Labels};

    use super::*;

    #[test]
    fn families_of_models_come_after_those_of_the_server() {
        let metrics = ServerMetrics::new(&EngineOptions::default());
        let family = metrics.custom.family("seen", "", CustomMetricKind::Counter);
        let metric = family.expect("a family").metric(Labels::new(), None).expect("a series");
        metric.increment(2.0).expect("a counter");
        let text = metrics.render(&[], |_| ());
        assert!(text.starts_with("# HELP nv_"), "{text}");
        assert!(text.ends_with("\n# TYPE seen counter\nseen 2\n"), "{text}");
    }
}

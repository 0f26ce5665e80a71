//! All metrics of the server as one text.

mod distributions;
pub(crate) mod server_load;

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use galatea_telemetry::{
    CustomMetrics, DistributionsSnapshot, ServerCounts, StatisticsSnapshot,
    metrics::{
        self, FigureSource, Figures, InstanceCounts, MemoryMetrics, ModelMetrics, ProcessMetrics,
        ProcessSampler,
    },
};
use galatea_types::LockExt;

pub(crate) use self::distributions::distributions;
use self::server_load::LoadSampler;
use crate::{options::EngineOptions, served_model::ServedModel};

/// Metrics of the server besides those of requests to each model.
pub(crate) struct ServerMetrics {
    options: Arc<EngineOptions>,
    pub process: ProcessSampler,
    pub load: LoadSampler,
    pub sources: Mutex<Vec<FigureSource>>,
    /// Metric families that models define themselves.
    pub custom: Arc<CustomMetrics>,
}

impl ServerMetrics {
    pub fn new(options: Arc<EngineOptions>) -> Self {
        let process = ProcessSampler::new(options.metrics.clone());
        let custom = options.custom_metrics.clone();
        let load = LoadSampler::default();
        Self { options, process, load, sources: Mutex::default(), custom }
    }

    /// Returns all metric families in the Prometheus text format. `add_own` adds the engine's own metrics.
    pub fn render(
        &self,
        models: &[Arc<ServedModel>],
        add_own: impl FnOnce(&mut Figures),
    ) -> String {
        let counted: Vec<_> = models.iter().map(|m| m.statistics().scrape()).collect();
        let EngineOptions { clock, gpus, memory, execution, response_cache, .. } = &*self.options;
        let now = clock.now();
        let rows: Vec<ModelMetrics<'_>> =
            models.iter().zip(&counted).map(|(model, counted)| row(model, counted, now)).collect();
        let process = ProcessMetrics {
            gpus: gpus.latest.latest(),
            memory: MemoryMetrics::new(memory, execution.sequence_memory.metrics()),
            cache: response_cache.as_ref().and_then(|cache| cache.metrics()),
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

impl ServerMetrics {
    /// Returns the families of the server without those of its models.
    pub fn render_server(
        &self,
        counts: ServerCounts,
        add_own: impl FnOnce(&mut Figures),
    ) -> String {
        let EngineOptions { memory, execution, .. } = &*self.options;
        let memory = MemoryMetrics::new(memory, execution.sequence_memory.metrics());
        let mut figures = Figures::default();
        add_own(&mut figures);
        self.sources.lock_unpoisoned().iter().for_each(|source| source(&mut figures));
        metrics::render_server(counts, memory, &figures)
    }
}

fn row<'a>(
    model: &'a ServedModel,
    (statistics, distributions): &'a (StatisticsSnapshot, DistributionsSnapshot),
    now: Instant,
) -> ModelMetrics<'a> {
    let counts = model.instance_counts();
    ModelMetrics {
        namespace: &model.id.namespace,
        name: model.config().name(),
        version: model.version(),
        tags: model.config().metric_tags(),
        statistics,
        distributions,
        load_duration: model.load_duration,
        in_flight: model.in_flight(),
        instances: counts.map(|(all, working)| InstanceCounts { all, working }),
        batch_delay: model.instances.as_ref().and_then(|queue| queue.learned_batch_delay()),
        admission_limit: model.admission_limit(),
        load: model.load(now),
        has_cache: model.is_cached,
    }
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::{CustomMetricKind, Labels};

    use super::*;

    #[test]
    fn metric_families_of_models_follow_those_of_the_server() {
        let metrics = ServerMetrics::new(Arc::new(EngineOptions::default()));
        let family = metrics.custom.family("seen", "", CustomMetricKind::Counter);
        let metric = family.expect("a family").metric(Labels::new(), None).expect("a series");
        metric.increment(2.0).expect("a counter");
        let text = metrics.render(&[], |_| ());
        assert!(text.starts_with("# HELP nv_"), "{text}");
        assert!(text.ends_with("\n# TYPE seen counter\nseen 2\n"), "{text}");
    }
}

//! All metrics of the server as one text.

use std::sync::Arc;

use galatea_telemetry::{
    CustomMetrics, StatisticsSnapshot,
    metrics::{
        self, MemoryMetrics, MetricsOptions, ModelMetrics, ProcessMetrics, ProcessSampler,
        SharedGpuMetrics,
    },
};
use galatea_types::MemoryBudget;

use crate::served_model::ServedModel;

/// What is measured besides the requests of each model.
pub(crate) struct ServerMetrics {
    process: ProcessSampler,
    gpus: SharedGpuMetrics,
    memory: Arc<MemoryBudget>,
    /// Families that models define themselves.
    pub custom: Arc<CustomMetrics>,
}

impl ServerMetrics {
    pub fn new(options: MetricsOptions, gpus: SharedGpuMetrics, memory: Arc<MemoryBudget>) -> Self {
        Self { process: ProcessSampler::new(options), gpus, memory, custom: Arc::default() }
    }

    /// All metric families in Prometheus text form.
    pub fn render(&self, models: &[Arc<ServedModel>]) -> String {
        let counted: Vec<StatisticsSnapshot> =
            models.iter().map(|m| m.statistics().snapshot()).collect();
        let rows: Vec<ModelMetrics<'_>> = models
            .iter()
            .zip(&counted)
            .map(|(model, statistics)| ModelMetrics {
                namespace: &model.id().namespace,
                name: model.config().name(),
                version: model.version(),
                tags: model.config().metric_tags(),
                statistics,
                load_duration: model.load_duration(),
            })
            .collect();
        let process = ProcessMetrics {
            gpus: self.gpus.latest(),
            memory: MemoryMetrics::from(&*self.memory),
            ..self.process.sample()
        };
        let mut text = metrics::render(&rows, &process);
        self.custom.render_into(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::{CustomMetricKind, Labels};

    use super::*;

    #[test]
    fn families_of_models_come_after_those_of_the_server() {
        let metrics = ServerMetrics::new(
            MetricsOptions::default(),
            SharedGpuMetrics::default(),
            MemoryBudget::unlimited(),
        );
        let family = metrics.custom.family("seen", "", CustomMetricKind::Counter);
        let metric = family.expect("a family").metric(Labels::new(), None).expect("a series");
        metric.increment(2.0).expect("a counter");
        let text = metrics.render(&[]);
        assert!(text.starts_with("# HELP nv_"), "{text}");
        assert!(text.ends_with("\n# TYPE seen counter\nseen 2\n"), "{text}");
    }
}

use galatea_telemetry::{
    StatisticsSnapshot,
    metrics::{self, ModelMetrics, ProcessMetrics},
};

use crate::Engine;

impl Engine {
    /// All metric families in Prometheus text form.
    pub fn metrics_text(&self) -> String {
        let models = self.all_ready();
        let counted: Vec<StatisticsSnapshot> =
            models.iter().map(|m| m.statistics().snapshot()).collect();
        let rows: Vec<ModelMetrics<'_>> = models
            .iter()
            .zip(&counted)
            .map(|(model, statistics)| ModelMetrics {
                name: model.config().name(),
                version: model.version(),
                tags: model.config().metric_tags(),
                statistics,
                load_duration: model.load_duration(),
            })
            .collect();
        let gpus = self.options().gpus.board.latest();
        let process = ProcessMetrics { gpus, ..self.process_sampler.sample() };
        let mut text = metrics::render(&rows, &process);
        self.custom_metrics.render_into(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use galatea_telemetry::{CustomMetricKind, Labels};

    use crate::{BackendRegistry, Engine, EngineOptions};

    #[test]
    fn families_of_models_come_after_the_servers() {
        let engine = Engine::new(EngineOptions::default(), BackendRegistry::default());
        let family = engine.custom_metrics.family("seen", "", CustomMetricKind::Counter);
        let metric = family.expect("a family").metric(Labels::new(), None).expect("a series");
        metric.increment(2.0).expect("a counter");
        let text = engine.metrics_text();
        assert!(text.starts_with("# HELP nv_"), "{text}");
        assert!(text.ends_with("\n# TYPE seen counter\nseen 2\n"), "{text}");
    }
}

use galatea_telemetry::{
    StatisticsSnapshot,
    metrics::{self, ModelMetrics},
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
                name: &model.config().name,
                version: model.version(),
                tags: &model.config().metric_tags,
                statistics,
                load_duration: model.load_duration(),
            })
            .collect();
        let mut text = metrics::render(&rows, &self.process_sampler.sample());
        self.custom_metrics.render_into(&mut text);
        text
    }
}

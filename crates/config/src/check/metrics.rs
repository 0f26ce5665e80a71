//! Histograms that a model asks for.

use galatea_proto::inference::{ModelMetrics, model_metrics::metric_control::MetricOptions};

/// What a part of `model_metrics` lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// No identifier.
    #[error("metric control must specify 'metric_identifier'")]
    NoIdentifier,
    /// No family.
    #[error("metric identifier must specify non-empty 'family'")]
    NoFamily,
    /// No options.
    #[error("metric control must specify 'histogram_options'")]
    NoOptions,
    /// No buckets.
    #[error("histogram options must specify non-empty 'buckets'")]
    NoBuckets,
}

pub(super) fn check(metrics: Option<&ModelMetrics>) -> Result<(), MetricsError> {
    for control in metrics.iter().flat_map(|m| &m.metric_control) {
        match (&control.metric_identifier, &control.metric_options) {
            (None, _) => return Err(MetricsError::NoIdentifier),
            (Some(identifier), _) if identifier.family.is_empty() => {
                return Err(MetricsError::NoFamily);
            }
            (_, None) => return Err(MetricsError::NoOptions),
            (_, Some(MetricOptions::HistogramOptions(o))) if o.buckets.is_empty() => {
                return Err(MetricsError::NoBuckets);
            }
            _ => {}
        }
    }
    Ok(())
}

//! Histograms that a model asks for.

use galatea_proto::inference::{ModelMetrics, model_metrics::metric_control::MetricOptions};

use super::at::{About, At};
use crate::FieldPath;

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

pub(super) fn check(metrics: Option<&ModelMetrics>) -> Result<(), At<MetricsError>> {
    for (index, control) in metrics.iter().flat_map(|m| &m.metric_control).enumerate() {
        let of = |field| {
            FieldPath::from("model_metrics.metric_control")
                .index(index)
                .join(FieldPath::from(field))
        };
        match (&control.metric_identifier, &control.metric_options) {
            (None, _) => return Err(MetricsError::NoIdentifier.at(of(""))),
            (Some(identifier), _) if identifier.family.is_empty() => {
                return Err(MetricsError::NoFamily.at(of("metric_identifier.family")));
            }
            (_, None) => return Err(MetricsError::NoOptions.at(of(""))),
            (_, Some(MetricOptions::HistogramOptions(o))) if o.buckets.is_empty() => {
                return Err(MetricsError::NoBuckets.at(of("histogram_options.buckets")));
            }
            _ => {}
        }
    }
    Ok(())
}

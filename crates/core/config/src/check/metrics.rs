//! Checks the histograms that a model asks for.

use galatea_proto::inference::{ModelMetrics, model_metrics::metric_control::MetricOptions};

use super::mistake::{Result, element_of, inside, refuse};

pub(super) fn check(metrics: Option<&ModelMetrics>) -> Result<()> {
    for (index, control) in metrics.iter().flat_map(|m| &m.metric_control).enumerate() {
        let (field, text) = match (&control.metric_identifier, &control.metric_options) {
            (None, _) => ("", "metric control must specify 'metric_identifier'"),
            (Some(identifier), _) if identifier.family.is_empty() => {
                ("metric_identifier.family", "metric identifier must specify non-empty 'family'")
            }
            (_, None) => ("", "metric control must specify 'histogram_options'"),
            (_, Some(MetricOptions::HistogramOptions(o))) if o.buckets.is_empty() => {
                ("histogram_options.buckets", "histogram options must specify non-empty 'buckets'")
            }
            _ => continue,
        };
        let advice = "write `metric_control { metric_identifier { family: \"nv_inference_first_response_histogram_ms\" } \
                      histogram_options { buckets: [ 10, 100, 1000 ] } }`";
        return refuse(field, text, advice)
            .map_err(inside(element_of("model_metrics.metric_control", index)));
    }
    Ok(())
}

//! Selects the distributions that are recorded of a model, from the options and its configuration.

use std::collections::BTreeMap;

use galatea_config::ModelConfig;
use galatea_telemetry::{Bounds, DistributionSettings, metrics::MetricsOptions};
use galatea_types::{Error, Result};

/// Returns the distributions recorded of one model. `has_cache` is true if its responses come from the response cache.
///
/// # Errors
/// `InvalidArg` for invalid buckets; also while histograms are off, so that the model loads with them on.
pub(crate) fn distributions(
    options: &MetricsOptions,
    config: &ModelConfig,
    has_cache: bool,
) -> Result<DistributionSettings> {
    let quantiles = &options.summary_quantiles;
    Ok(DistributionSettings {
        has_histograms: options.has_histogram_latencies,
        quantiles: options.has_summary_latencies.then(|| quantiles.as_slice().into()),
        has_cache,
        bounds: bounds(config)?,
    })
}

/// Returns the bounds that a configuration gives its histograms. If it names a family twice, the last one counts.
fn bounds(config: &ModelConfig) -> Result<BTreeMap<String, Bounds>> {
    let mut all = BTreeMap::new();
    for (family, buckets) in config.histogram_buckets() {
        if !DistributionSettings::is_histogram(family) {
            log::warn!(
                "model_metrics of model '{}' has no effect on '{family}': it is not one of the server's histograms",
                config.name()
            );
            continue;
        }
        let bounds = Bounds::new(buckets).map_err(|reason| {
            let text = format!(
                "model_metrics of model '{}': the buckets of '{family}' are not valid for a histogram: {reason}",
                config.name()
            );
            Error::invalid_arg(text).with_source(reason)
        })?;
        all.insert(family.to_owned(), bounds);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::model_config;

    use super::*;

    fn settings(more: &str, options: &MetricsOptions) -> Result<DistributionSettings> {
        let text = format!("name: \"m\" backend: \"identity\" max_batch_size: 4 {more}");
        distributions(options, &model_config(&text), false)
    }

    fn control(family: &str, buckets: &str) -> String {
        format!(
            "model_metrics {{ metric_control {{ metric_identifier {{ family: \"{family}\" }} \
             histogram_options {{ buckets: [ {buckets} ] }} }} }}"
        )
    }

    #[test]
    fn configured_buckets_become_histogram_bounds() {
        let options = MetricsOptions { has_histogram_latencies: true, ..MetricsOptions::default() };
        let first = "nv_inference_first_response_histogram_ms";
        let own = settings(&control(first, "-1, 0.0, 1, 2.5"), &options).expect("ascending");
        assert_eq!(own.bounds[first].values(), [-1.0, 0.0, 1.0, 2.5]);
        assert!(own.has_histograms && own.quantiles.is_none());
        let others = settings(&control("mine", "2, 1"), &options).expect("not ours");
        assert!(others.bounds.is_empty());
    }

    #[test]
    fn buckets_that_do_not_ascend_are_always_refused() {
        let text = control("galatea_inference_batch_size", "1, 4, 2");
        let error = settings(&text, &MetricsOptions::default()).expect_err("unsorted");
        assert_eq!(
            error.to_string(),
            "model_metrics of model 'm': the buckets of 'galatea_inference_batch_size' are not valid for a \
             histogram: each bucket must be larger than the one before it"
        );
    }

    #[test]
    fn summaries_have_the_configured_quantiles() {
        let options = MetricsOptions {
            has_summary_latencies: true,
            summary_quantiles: vec![0.25],
            ..MetricsOptions::default()
        };
        let own = settings("", &options).expect("nothing of its own");
        assert_eq!(own.quantiles.as_deref(), Some(&[0.25][..]));
    }
}

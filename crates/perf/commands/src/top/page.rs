//! Reads the metrics page: figures of models and of the machine.

use std::collections::BTreeMap;

use galatea_client::{MetricSample, metric_samples};

use super::{counters::Counters, histogram::Histogram};

/// Most models and GPUs that are kept.
pub(crate) const MOST_MODELS: usize = 10_000;
const MOST_GPUS: usize = 64;

/// A model and one of its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ModelKey {
    pub name: String,
    pub version: String,
}

/// The figures of a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub models: BTreeMap<ModelKey, ModelFigures>,
    pub machine: Machine,
}

/// Figures of a model version. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelFigures {
    pub counters: Counters,
    /// The page has the counters.
    pub has_counters: bool,
    pub pending: Option<f64>,
    pub instances: Option<f64>,
    pub instances_working: Option<f64>,
    /// The page has a summary of its durations, which may be empty.
    pub has_summary: bool,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    pub requests: Histogram,
}

/// The server's machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Machine {
    pub cpu: Option<f64>,
    pub memory_used: Option<f64>,
    pub memory_total: Option<f64>,
    pub gpus: BTreeMap<String, Gpu>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gpu {
    pub utilization: Option<f64>,
    pub memory_used: Option<f64>,
    pub memory_total: Option<f64>,
    pub power_watts: Option<f64>,
}

impl Page {
    pub fn read(text: &str) -> Self {
        let mut page = Self::default();
        metric_samples(text).for_each(|sample| page.take(&sample));
        page
    }

    fn take(&mut self, sample: &MetricSample<'_>) {
        match sample.name {
            "nv_cpu_utilization" => self.machine.cpu = known(sample.value),
            "nv_cpu_memory_used_bytes" => self.machine.memory_used = known(sample.value),
            // Triton reports zero until it has measured.
            "nv_cpu_memory_total_bytes" => {
                self.machine.memory_total = known(sample.value).filter(|&bytes| bytes > 0.0);
            }
            name if name.starts_with("nv_gpu_") => self.take_gpu(sample),
            _ => self.take_model(sample),
        }
    }

    fn take_gpu(&mut self, sample: &MetricSample<'_>) {
        let Some(uuid) = sample.label("gpu_uuid") else { return };
        let gpus = &mut self.machine.gpus;
        if gpus.len() >= MOST_GPUS && !gpus.contains_key(uuid) {
            return;
        }
        let gpu = gpus.entry(uuid.to_owned()).or_default();
        match sample.name {
            "nv_gpu_utilization" => gpu.utilization = known(sample.value),
            "nv_gpu_memory_used_bytes" => gpu.memory_used = known(sample.value),
            "nv_gpu_memory_total_bytes" => gpu.memory_total = known(sample.value),
            "nv_gpu_power_usage" => gpu.power_watts = known(sample.value),
            _ => {}
        }
    }

    fn take_model(&mut self, sample: &MetricSample<'_>) {
        let Some(name) = sample.label("model") else { return };
        let version = sample.label("version").unwrap_or_default();
        let key = ModelKey { name: name.to_owned(), version: version.to_owned() };
        if self.models.len() < MOST_MODELS || self.models.contains_key(&key) {
            self.models.entry(key).or_default().take(sample);
        }
    }
}

impl ModelFigures {
    fn take(&mut self, sample: &MetricSample<'_>) {
        let value = sample.value;
        match sample.name {
            "nv_inference_pending_request_count" => add(&mut self.pending, value),
            "galatea_model_instances" => add(&mut self.instances, value),
            "galatea_model_instances_working" => add(&mut self.instances_working, value),
            "nv_inference_request_summary_us" => self.take_quantile(sample),
            "galatea_inference_request_duration_seconds_bucket" => {
                let bound = sample.label("le").and_then(|le| le.parse::<f64>().ok());
                if let Some(bound) = bound {
                    self.requests.add(bound * 1e9, whole(value));
                }
            }
            _ => self.take_counter(sample),
        }
    }

    fn take_quantile(&mut self, sample: &MetricSample<'_>) {
        let quantile = sample.label("quantile").and_then(|text| text.parse::<f64>().ok());
        let is = |wanted: f64| quantile.is_some_and(|quantile| (quantile - wanted).abs() < 1e-9);
        let ns = known(sample.value).map(|us| us * 1e3);
        self.has_summary = true;
        match () {
            () if is(0.5) => self.p50_ns = ns,
            () if is(0.99) => self.p99_ns = ns,
            () => {}
        }
    }

    /// Adds a sample. A server with GPUs has one for each of them.
    fn take_counter(&mut self, sample: &MetricSample<'_>) {
        const NS_OF_US: u64 = 1000;
        let counters = &mut self.counters;
        let (field, unit) = match sample.name {
            "nv_inference_request_success" => (&mut counters.success, 1),
            "nv_inference_request_failure" => (&mut counters.fail, 1),
            "nv_inference_count" => (&mut counters.inferences, 1),
            "nv_inference_exec_count" => (&mut counters.executions, 1),
            "nv_inference_request_duration_us" => (&mut counters.request_ns, NS_OF_US),
            "nv_inference_queue_duration_us" => (&mut counters.queue_ns, NS_OF_US),
            "nv_inference_compute_input_duration_us" => (&mut counters.input_ns, NS_OF_US),
            "nv_inference_compute_infer_duration_us" => (&mut counters.infer_ns, NS_OF_US),
            "nv_inference_compute_output_duration_us" => (&mut counters.output_ns, NS_OF_US),
            "nv_cache_num_hits_per_model" => (&mut counters.cache_hits, 1),
            "nv_cache_num_misses_per_model" => (&mut counters.cache_misses, 1),
            _ => return,
        };
        *field = field.saturating_add(whole(sample.value).saturating_mul(unit));
        self.has_counters = true;
    }
}

fn known(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}

fn add(sum: &mut Option<f64>, value: f64) {
    if let Some(value) = known(value) {
        *sum = Some(sum.unwrap_or_default() + value);
    }
}

/// Converts a sample to a count. A cast of other numbers gives zero, or the largest number.
fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# TYPE nv_inference_request_success counter
nv_inference_request_success{gpu_uuid="a",model="m",version="1"} 3
nv_inference_request_success{gpu_uuid="b",model="m",version="1"} 4
nv_inference_request_failure{model="m",reason="OTHER",version="1"} 1
nv_inference_request_failure{model="m",reason="BACKEND",version="1"} 2
nv_inference_queue_duration_us{model="m",version="1"} 5
nv_inference_pending_request_count{model="m",version="1"} 6
nv_inference_request_summary_us{model="m",version="1",quantile="0.5"} 7
nv_inference_request_summary_us{model="m",version="1",quantile="0.99"} Nan
galatea_model_instances{model="m",version="1"} 2
nv_inference_count{model="m",version="2"} -1
nv_cpu_utilization 0.25
nv_gpu_utilization{gpu_uuid="a"} 0.5
nv_gpu_memory_used_bytes{gpu_uuid="a"} 1e9
nv_gpu_power_usage 1
"#;

    #[test]
    fn metrics_are_grouped_by_model() {
        let page = Page::read(TEXT);
        let key = |version: &str| ModelKey { name: "m".to_owned(), version: version.to_owned() };
        let model = &page.models[&key("1")];
        assert_eq!((model.counters.success, model.counters.fail), (7, 3));
        assert_eq!(model.counters.queue_ns, 5000);
        assert_eq!((model.pending, model.instances), (Some(6.0), Some(2.0)));
        assert_eq!((model.p50_ns, model.p99_ns), (Some(7000.0), None));
        assert_eq!(page.models[&key("2")].counters.inferences, 0);
        assert_eq!((page.machine.cpu, page.machine.gpus.len()), (Some(0.25), 1));
        assert_eq!(page.machine.gpus["a"].memory_used, Some(1e9));
    }

    #[test]
    fn the_number_of_models_is_bounded() {
        let text: String = (0..MOST_MODELS + 5)
            .map(|at| format!("nv_inference_count{{model=\"{at}\",version=\"1\"}} 1\n"))
            .collect();
        assert_eq!(Page::read(&text).models.len(), MOST_MODELS);
    }
}

//! `--collect-metrics`: reads the GPU gauges of the server's Prometheus page at intervals.

use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Arc, Mutex, MutexGuard,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use galatea_perf_types::{
    failure::{Failure, Result},
    load::MetricsCollector,
    settings::MetricsSettings,
    status::GpuMetrics,
};
use galatea_types::LockExt;

use galatea_client::{GetOptions, metric_samples};

/// Reads in a thread of its own between `start` and `stop`.
pub struct GpuMetricsCollector {
    settings: MetricsSettings,
    /// Headers of each query, the same as for the server's requests.
    headers: Vec<(String, String)>,
    samples: Arc<Mutex<Samples>>,
    thread: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

#[derive(Default)]
struct Samples {
    taken: Vec<GpuMetrics>,
    failure: Option<Failure>,
    warnings: Vec<String>,
    has_reported_gaps: bool,
    has_reported_interval: bool,
}

impl GpuMetricsCollector {
    pub fn new(settings: MetricsSettings, headers: Vec<(String, String)>) -> Self {
        Self { settings, headers, samples: Arc::default(), thread: None }
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock_unpoisoned()
    }
}

impl MetricsCollector for GpuMetricsCollector {
    fn start(&mut self) {
        if self.thread.is_some() {
            return;
        }
        let (stop, stopped) = mpsc::channel();
        let (settings, samples) = (self.settings.clone(), self.samples.clone());
        let headers = self.headers.clone();
        match thread::Builder::new()
            .name("metrics".into())
            .spawn(move || collect(&settings, &headers, &samples, &stopped))
        {
            Ok(thread) => self.thread = Some((stop, thread)),
            Err(error) => {
                self.samples().failure =
                    Some(Failure::generic(format!("cannot start a thread: {error}")))
            }
        }
    }

    fn take(&mut self) -> Result<Vec<GpuMetrics>> {
        let mut samples = self.samples();
        match samples.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(mem::take(&mut samples.taken)),
        }
    }

    fn take_warnings(&mut self) -> Vec<String> {
        mem::take(&mut self.samples().warnings)
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Drop for GpuMetricsCollector {
    fn drop(&mut self) {
        self.stop();
    }
}

#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn collect(
    settings: &MetricsSettings,
    headers: &[(String, String)],
    samples: &Mutex<Samples>,
    stopped: &mpsc::Receiver<()>,
) {
    let url = if settings.url.contains("://") {
        settings.url.clone()
    } else {
        format!("http://{}", settings.url)
    };
    loop {
        let asked = Instant::now();
        let page = ask(&url, headers);
        let took = asked.elapsed();
        let ended = page.is_err();
        samples.lock_unpoisoned().add(page, took, settings.interval);
        let pause = settings.interval.saturating_sub(took);
        if ended || stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn ask(url: &str, headers: &[(String, String)]) -> Result<GpuMetrics> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::generic(format!(
            "cannot read the server's metrics from {url} (--metrics-url): {error}"
        ))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let local = tokio::task::LocalSet::new();
    let options = GetOptions { headers: headers.to_vec(), ..GetOptions::default() };
    let (status, body) = local
        .block_on(&runtime, galatea_client::get(url, options))
        .map_err(|error| failed(&error))?;
    if status != 200 {
        return Err(failed(&format_args!("the answer has status {status}")));
    }
    Ok(read_gauges(&String::from_utf8_lossy(&body)))
}

impl Samples {
    fn add(&mut self, page: Result<GpuMetrics>, took: Duration, interval: Duration) {
        match page {
            Ok(metrics) => {
                self.report_gaps(&metrics);
                self.taken.push(metrics);
            }
            Err(failure) => self.failure = Some(failure),
        }
        if took > interval && !mem::replace(&mut self.has_reported_interval, true) {
            self.warnings.push(format!(
                "WARNING: Triton metrics endpoint is slow: its answer took {} ms, more than the --metrics-interval of {} ms.",
                took.as_millis(),
                interval.as_millis()
            ));
        }
    }

    fn report_gaps(&mut self, metrics: &GpuMetrics) {
        let gaps = [
            ("nv_gpu_utilization", metrics.utilization.is_empty()),
            ("nv_gpu_power_usage", metrics.power_watts.is_empty()),
            ("nv_gpu_memory_used_bytes", metrics.memory_used_bytes.is_empty()),
            ("nv_gpu_memory_total_bytes", metrics.memory_total_bytes.is_empty()),
        ];
        if gaps.iter().any(|(_, missing)| *missing)
            && !mem::replace(&mut self.has_reported_gaps, true)
        {
            let missing = gaps.iter().filter(|(_, missing)| *missing);
            self.warnings.extend(
                missing.map(|(name, _)| format!("WARNING: Unable to parse '{name}' metric.")),
            );
        }
    }
}

fn read_gauges(page: &str) -> GpuMetrics {
    let gauge = |name: &str| gauge(page, name);
    GpuMetrics {
        utilization: gauge("nv_gpu_utilization"),
        power_watts: gauge("nv_gpu_power_usage"),
        memory_used_bytes: whole(gauge("nv_gpu_memory_used_bytes")),
        memory_total_bytes: whole(gauge("nv_gpu_memory_total_bytes")),
    }
}

/// Returns the samples with this name, by GPU.
fn gauge(page: &str, name: &str) -> BTreeMap<String, f64> {
    let samples = metric_samples(page).filter(|sample| sample.name == name);
    samples
        .filter_map(|sample| Some((sample.label("gpu_uuid")?.to_owned(), sample.value)))
        .collect()
}

/// Converts byte counts, which may be written as `6.3e+07`.
fn whole(values: BTreeMap<String, f64>) -> BTreeMap<String, u64> {
    values.into_iter().map(|(uuid, value)| (uuid, value as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP nv_gpu_utilization GPU utilization rate\n\
        nv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.41\n\
        nv_gpu_utilization{gpu_uuid=\"GPU-2\"} 0.77\n\
        nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 58.7\n\
        nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 6.5e+07\n\
        nv_cpu_utilization 0.5\n";

    #[test]
    fn gpu_metrics_are_read_by_gpu() {
        let metrics = read_gauges(PAGE);
        assert_eq!(metrics.utilization["GPU-2"], 0.77);
        assert_eq!(metrics.power_watts.len(), 1);
        assert_eq!(metrics.memory_used_bytes["GPU-1"], 65_000_000);
        assert!(metrics.memory_total_bytes.is_empty());
    }

    #[test]
    fn missing_metrics_are_reported_once() {
        let mut samples = Samples::default();
        for _ in 0..2 {
            samples.add(Ok(read_gauges(PAGE)), Duration::ZERO, Duration::from_secs(1));
        }
        assert_eq!(
            samples.warnings,
            ["WARNING: Unable to parse 'nv_gpu_memory_total_bytes' metric."]
        );
        assert_eq!(samples.taken.len(), 2);
    }

    #[test]
    fn foreign_lines_are_skipped() {
        let odd = "nv_gpu_utilization{\nnv_gpu_utilization{gpu_uuid=\"} 1\nnv_gpu_utilization{gpu_uuid=\"a\"}\n";
        assert!(read_gauges(odd).utilization.is_empty());
    }
}

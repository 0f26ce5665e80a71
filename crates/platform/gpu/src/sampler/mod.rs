//! Samples the metrics of GPUs at an interval.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{
    driver::Gpu,
    error::GpuError,
    metrics::{GpuMetrics, SharedGpuMetrics},
    nvml::{Device, Nvml},
};

/// Shortest interval. A shorter one only costs time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// A thread that samples the GPUs once per interval and publishes their metrics. It ends when this is dropped.
///
/// It has its own thread because a driver may answer slowly, and a request for metrics must not wait for that.
#[derive(Debug)]
pub struct GpuSampler {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GpuSampler {
    /// Takes the first sample, then continues in the background. The used energy counts from here.
    ///
    /// # Errors
    /// When the management library is missing or does not start. A GPU that it does not know is left out with a warning.
    pub fn start(
        gpus: &[Gpu],
        interval: Duration,
        shared: SharedGpuMetrics,
    ) -> Result<Self, GpuError> {
        Ok(Self::of_source(NvmlSource::new(Nvml::open()?, gpus), interval, shared)?)
    }

    fn of_source(
        mut source: impl Source + 'static,
        interval: Duration,
        shared: SharedGpuMetrics,
    ) -> io::Result<Self> {
        shared.publish(source.read());
        let (stop, stopped) = mpsc::channel::<()>();
        let interval = interval.max(SHORTEST_INTERVAL);
        let sample = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
                shared.publish(source.read());
            }
            shared.publish(Vec::new());
        };
        let thread = thread::Builder::new().name("gpu-metrics".to_owned()).spawn(sample)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for GpuSampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

trait Source: Send {
    fn read(&mut self) -> Vec<GpuMetrics>;
}

struct NvmlSource {
    nvml: Nvml,
    gpus: Vec<SampledGpu>,
}

struct SampledGpu {
    index: u32,
    device: Device,
    uuid: String,
    /// Energy at the start in millijoules. `None` until the GPU has reported it.
    energy_before: Option<u64>,
    /// Queries that failed once. They are not repeated at each sample.
    failed_queries: Vec<&'static str>,
}

impl NvmlSource {
    fn new(nvml: Nvml, gpus: &[Gpu]) -> Self {
        let open = |gpu: &Gpu| -> Result<SampledGpu, GpuError> {
            let device = nvml.device(&gpu.pci_bus_id)?;
            let uuid = nvml.uuid(device)?;
            log::info!("Collecting metrics for GPU {}: {}", gpu.index, gpu.name);
            let (index, energy_before, failed_queries) = (gpu.index, None, Vec::new());
            Ok(SampledGpu { index, device, uuid, energy_before, failed_queries })
        };
        let known = gpus.iter().filter_map(|gpu| {
            open(gpu)
                .inspect_err(|e| {
                    log::warn!("GPU metrics will not be available for device:{}: {e}", gpu.index);
                })
                .ok()
        });
        let gpus = known.collect();
        Self { nvml, gpus }
    }
}

impl Source for NvmlSource {
    fn read(&mut self) -> Vec<GpuMetrics> {
        let nvml = &self.nvml;
        self.gpus.iter_mut().map(|gpu| gpu.read(nvml)).collect()
    }
}

impl SampledGpu {
    fn read(&mut self, nvml: &Nvml) -> GpuMetrics {
        let device = self.device;
        let memory = self.query("memory", || nvml.memory(device));
        let energy = self.query("energy consumption", || nvml.energy(device));
        GpuMetrics {
            utilization: self.query("utilization", || nvml.utilization(device)),
            memory_total_bytes: memory.map(|(total, _)| total),
            memory_used_bytes: memory.map(|(_, used)| used),
            power_usage_watts: self.query("power usage", || nvml.power_usage(device)),
            power_limit_watts: self.query("power limit", || nvml.power_limit(device)),
            energy_joules: energy.map(|now| self.joules_since_start(now)),
            uuid: self.uuid.clone(),
        }
    }

    fn query<T>(
        &mut self,
        what: &'static str,
        get: impl FnOnce() -> Result<T, GpuError>,
    ) -> Option<T> {
        if self.failed_queries.contains(&what) {
            return None;
        }
        get()
            .inspect_err(|error| {
                log::warn!("Unable to get {what} for GPU {}: {error}", self.index);
                self.failed_queries.push(what);
            })
            .ok()
    }

    fn joules_since_start(&mut self, now: u64) -> f64 {
        let before = *self.energy_before.get_or_insert(now);
        now.saturating_sub(before) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests;

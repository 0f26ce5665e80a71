use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use galatea_telemetry::metrics::{GpuBoard, GpuMetrics};

use crate::{
    Gpu, GpuError,
    nvml::{Device, Nvml},
};

/// No machine is better for being asked more often than this.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// A thread that looks at the GPUs once per interval and writes what it sees on a board. Dropped, it ends.
///
/// A thread of its own because a driver may take its time to answer, and whoever asks for metrics must not wait
/// for that.
#[derive(Debug)]
pub struct GpuSampler {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GpuSampler {
    /// Takes the first figures, then goes on in the background. The energy used counts from here.
    ///
    /// # Errors
    /// The management library is not there or does not start. A single GPU that it does not know is left out
    /// with a warning.
    pub fn start(gpus: &[Gpu], interval: Duration, board: GpuBoard) -> Result<Self, GpuError> {
        Ok(Self::of_source(Watched::new(Nvml::open()?, gpus), interval, board)?)
    }

    fn of_source(
        mut source: impl Source + 'static,
        interval: Duration,
        board: GpuBoard,
    ) -> io::Result<Self> {
        board.publish(source.read());
        let (stop, stopped) = mpsc::channel::<()>();
        let interval = interval.max(SHORTEST_INTERVAL);
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(interval) {
                board.publish(source.read());
            }
            board.publish(Vec::new());
        };
        let thread = thread::Builder::new().name("gpu-metrics".to_owned()).spawn(watch)?;
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

/// Where figures come from.
trait Source: Send {
    fn read(&mut self) -> Vec<GpuMetrics>;
}

/// The GPUs that are watched.
struct Watched {
    nvml: Nvml,
    gpus: Vec<WatchedGpu>,
}

struct WatchedGpu {
    index: u32,
    device: Device,
    uuid: String,
    /// Millijoules at the start; `None` until the GPU has told.
    energy_before: Option<u64>,
    /// Calls that failed once: a GPU that cannot tell something is not asked about it at each look.
    refused: Vec<&'static str>,
}

impl Watched {
    fn new(nvml: Nvml, gpus: &[Gpu]) -> Self {
        let watch = |gpu: &Gpu| -> Result<WatchedGpu, GpuError> {
            let device = nvml.device(&gpu.pci_bus_id)?;
            let uuid = nvml.uuid(device)?;
            log::info!("Collecting metrics for GPU {}: {}", gpu.index, gpu.name);
            let (index, energy_before, refused) = (gpu.index, None, Vec::new());
            Ok(WatchedGpu { index, device, uuid, energy_before, refused })
        };
        let known = gpus.iter().filter_map(|gpu| {
            watch(gpu)
                .inspect_err(|e| {
                    log::warn!("GPU metrics will not be available for device:{}: {e}", gpu.index);
                })
                .ok()
        });
        let gpus = known.collect();
        Self { nvml, gpus }
    }
}

impl Source for Watched {
    fn read(&mut self) -> Vec<GpuMetrics> {
        let nvml = &self.nvml;
        self.gpus.iter_mut().map(|gpu| gpu.read(nvml)).collect()
    }
}

impl WatchedGpu {
    fn read(&mut self, nvml: &Nvml) -> GpuMetrics {
        let device = self.device;
        let memory = self.ask("memory", || nvml.memory(device));
        let energy = self.ask("energy consumption", || nvml.energy(device));
        GpuMetrics {
            utilization: self.ask("utilization", || nvml.utilization(device)),
            memory_total_bytes: memory.map(|(total, _)| total),
            memory_used_bytes: memory.map(|(_, used)| used),
            power_usage_watts: self.ask("power usage", || nvml.power_usage(device)),
            power_limit_watts: self.ask("power limit", || nvml.power_limit(device)),
            energy_joules: energy.map(|now| self.joules_since_start(now)),
            uuid: self.uuid.clone(),
        }
    }

    fn ask<T>(
        &mut self,
        what: &'static str,
        get: impl FnOnce() -> Result<T, GpuError>,
    ) -> Option<T> {
        if self.refused.contains(&what) {
            return None;
        }
        get()
            .inspect_err(|error| {
                log::warn!("Unable to get {what} for GPU {}: {error}", self.index);
                self.refused.push(what);
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

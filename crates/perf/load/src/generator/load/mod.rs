//! The load generator that the measurement drives.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use galatea_client::Target;
use galatea_perf_types::{
    failure::{Failure, Result},
    load::{LoadGenerator, LoadStart},
    model::ModelInfo,
    record::{CallTotals, RequestRecord},
    requests::RequestSource,
    settings::{self, DEFAULT_RATE_THREADS, DEFAULT_THREADS, Distribution, Settings},
};
use rustix::process::{Resource, getrlimit};

use super::{
    records::WorkerRecords,
    schedule::{Partition, Schedule, custom_rate},
    shared::Shared,
    worker::WorkerSettings,
    worker_thread::{Handle, STOP_TIMEOUT, Work},
};

/// Sends requests from worker threads, which begin with the first start and end with [`LoadGenerator::stop`].
pub struct Load {
    shared: Arc<Shared>,
    load: settings::Load,
    worker_settings: Vec<WorkerSettings>,
    workers: Vec<Handle>,
    /// Idle time of each worker at the last reset.
    idle: Vec<Duration>,
    /// Workers that have work.
    active: usize,
}

impl Load {
    /// Prepares the load without sending. Fails if the first request cannot be encoded.
    pub fn new(
        settings: &Settings,
        model: &ModelInfo,
        target: Target,
        requests: Arc<dyn RequestSource>,
    ) -> Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_cores(cores, settings, model, target, requests)
    }

    fn with_cores(
        cores: usize,
        settings: &Settings,
        model: &ModelInfo,
        target: Target,
        requests: Arc<dyn RequestSource>,
    ) -> Result<Self> {
        let shared = Shared::new(settings, model, target, requests)
            .map_err(|error| Failure::generic(error.message()))?;
        Ok(Self {
            worker_settings: worker_settings(cores, settings, &shared),
            shared: Arc::new(shared),
            load: settings.load.clone(),
            workers: Vec::new(),
            idle: Vec::new(),
            active: 0,
        })
    }

    fn begin(&mut self, start: LoadStart, count: Option<u64>, keep_records: bool) -> Result<()> {
        self.start_workers()?;
        if !matches!(start, LoadStart::Concurrency(_)) {
            self.pause()?;
        }
        self.worker_records().for_each(|records| records.set_recording(keep_records));
        let count = match (&self.load, start) {
            (settings::Load::PeriodicConcurrency { range, .. }, LoadStart::Periodic) => {
                Some(range.end)
            }
            _ => count,
        };
        self.shared.progress.begin(count);
        match start {
            LoadStart::Concurrency(contexts) => self.begin_contexts(contexts),
            LoadStart::RequestRate(rate) => {
                let poisson = matches!(
                    self.load,
                    settings::Load::RequestRate { distribution: Distribution::Poisson, .. }
                );
                let make = if poisson { Schedule::poisson } else { Schedule::constant };
                self.begin_schedule(|partition| Some(make(rate, partition)))?;
            }
            LoadStart::CustomIntervals => {
                let intervals = self.custom_intervals().to_vec();
                self.begin_schedule(|partition| Schedule::custom(intervals.clone(), partition))?;
            }
            LoadStart::Periodic => self.begin_periodic()?,
        }
        Ok(())
    }

    fn start_workers(&mut self) -> Result<()> {
        for settings in self.worker_settings.iter().skip(self.workers.len()) {
            let worker = Handle::spawn(self.shared.clone(), *settings).map_err(|error| {
                Failure::generic(format!("cannot start a worker thread: {error}"))
            })?;
            self.workers.push(worker);
            self.idle.push(Duration::ZERO);
        }
        Ok(())
    }

    fn begin_contexts(&mut self, contexts: u64) {
        let of = self.workers.len() as u64;
        self.active = contexts.min(of) as usize;
        for (index, worker) in (0u64..).zip(&self.workers) {
            let count = contexts / of + u64::from(index < contexts % of);
            worker.begin(Work::Contexts { count: count as usize, stride: self.active as u64 });
        }
    }

    fn begin_schedule(&mut self, schedule: impl Fn(Partition) -> Option<Schedule>) -> Result<()> {
        self.active = self.workers.len();
        // Made first, so that all workers start at the same moment.
        let schedules: Option<Vec<_>> =
            self.worker_settings.iter().map(|settings| schedule(settings.partition)).collect();
        let schedules =
            schedules.ok_or_else(|| Failure::generic("The custom intervals vector is empty"))?;
        let start = Instant::now();
        for (worker, schedule) in self.workers.iter().zip(schedules) {
            worker.begin(Work::Schedule { schedule, start });
        }
        Ok(())
    }

    fn begin_periodic(&mut self) -> Result<()> {
        let settings::Load::PeriodicConcurrency { range, period } = self.load else {
            return Err(Failure::generic("the load has no periodic concurrency range"));
        };
        self.active = 1;
        if let Some(worker) = self.workers.first() {
            worker.begin(Work::Periodic { range, period });
        }
        Ok(())
    }

    /// Pauses the workers, and waits until nothing is in flight.
    fn pause(&self) -> Result<()> {
        let paused: Vec<_> = self.workers.iter().map(Handle::pause).collect();
        match paused.iter().all(|paused| paused.recv().is_ok()) {
            true => Ok(()),
            false => Err(late()),
        }
    }

    fn custom_intervals(&self) -> &[Duration] {
        match &self.load {
            settings::Load::CustomIntervals(intervals) => intervals,
            _ => &[],
        }
    }

    fn worker_records(&self) -> impl Iterator<Item = &WorkerRecords> {
        self.workers.iter().map(|worker| &*worker.records)
    }
}

impl LoadGenerator for Load {
    fn warm_up(&mut self, start: LoadStart, count: u64) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.begin(start, Some(count), false)?;
        self.shared.progress.wait();
        self.check_health()
    }

    fn start(&mut self, start: LoadStart, request_count: Option<u64>) -> Result<()> {
        self.begin(start, request_count, true)
    }

    fn check_health(&self) -> Result<()> {
        if let Some(failure) = self.shared.progress.failure() {
            return Err(failure);
        }
        match self.workers.iter().any(Handle::is_dead) {
            true => Err(Failure::generic("a worker thread of the load has ended")),
            false => Ok(()),
        }
    }

    fn collected(&self) -> u64 {
        self.worker_records().map(|records| records.len() as u64).sum()
    }

    fn take_records(&mut self) -> Vec<RequestRecord> {
        let mut records: Vec<_> = self.worker_records().map(WorkerRecords::take_records).collect();
        let mut all = records.pop().unwrap_or_default();
        records.into_iter().for_each(|more| all.extend(more));
        all
    }

    fn call_totals(&self) -> CallTotals {
        self.worker_records().map(WorkerRecords::totals).fold(
            CallTotals::default(),
            |sum, totals| CallTotals {
                calls: sum.calls + totals.calls,
                request_ns: sum.request_ns + totals.request_ns,
                send_ns: sum.send_ns + totals.send_ns,
                receive_ns: sum.receive_ns + totals.receive_ns,
            },
        )
    }

    fn reset_idle_time(&mut self) {
        self.idle = self.workers.iter().map(|worker| worker.idle.idle(Instant::now())).collect();
    }

    fn idle_time(&self) -> Duration {
        let idle = self.workers.iter().zip(&self.idle);
        let idle =
            idle.map(|(worker, before)| worker.idle.idle(Instant::now()).saturating_sub(*before));
        let active = self.active.max(1);
        idle.take(active).sum::<Duration>() / u32::try_from(active).unwrap_or(u32::MAX)
    }

    fn take_sent_count(&mut self) -> u64 {
        self.worker_records().map(WorkerRecords::take_sent).sum()
    }

    fn is_finished(&self) -> bool {
        self.shared.progress.is_finished()
    }

    fn custom_request_rate(&self) -> Option<f64> {
        custom_rate(self.custom_intervals())
    }

    /// Waits at most a minute. Requests still in flight are then abandoned, which is an error.
    fn stop(&mut self) -> Result<()> {
        let mut workers = std::mem::take(&mut self.workers);
        let stopped: Vec<mpsc::Receiver<bool>> = workers.iter().map(Handle::stop).collect();
        // A worker that failed to start has reported the reason and has ended.
        let ended = stopped.iter().all(|stopped| stopped.recv().unwrap_or(true));
        let joined = workers.iter_mut().all(Handle::join);
        match (ended, joined) {
            (true, true) => Ok(()),
            (false, _) => Err(late()),
            (_, false) => Err(Failure::generic("a worker thread of the load has ended")),
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for worker in &self.workers {
            // The thread ends by itself; nobody waits for it.
            drop(worker.stop());
        }
    }
}

fn late() -> Failure {
    Failure::generic(format!("requests were still in flight after {} s", STOP_TIMEOUT.as_secs()))
}

/// Number of file descriptors left to the rest of the program.
const SPARE_FILES: u64 = 64;

/// Uses as few workers as can carry the load. While one keeps up, another thread only costs CPU time. At most half of the
/// cores are used: the server under test may run on the same machine.
fn worker_settings(cores: usize, settings: &Settings, shared: &Shared) -> Vec<WorkerSettings> {
    let by_rate = is_by_rate(&settings.load);
    let default_threads = if by_rate { DEFAULT_RATE_THREADS } else { DEFAULT_THREADS };
    let threads = settings.max_threads.unwrap_or(default_threads).max(1);
    let sequences = settings.sequences.count.max(1) as usize;
    let in_sequences = by_rate && shared.sequences.is_some();
    let at_once = match settings.load {
        settings::Load::Concurrency(range) if range.end > 0 => range.start.max(range.end) as usize,
        settings::Load::PeriodicConcurrency { .. } => 1,
        _ if in_sequences => sequences,
        _ => usize::MAX,
    };
    let of = at_once.min(threads).min((cores / 2).max(1)).max(1);
    let contexts = if shared.calls.asynchronous { open_files() } else { threads };
    (0..of)
        .map(|index| WorkerSettings {
            partition: Partition { index: index as u64, of: of as u64 },
            streams: part(threads, index, of).max(1),
            contexts: part(contexts, index, of).max(1),
            slots: if in_sequences { part(sequences, index, of) } else { 0 },
            overlap: shared.calls.streaming && !settings.sequences.serial,
            serial: settings.sequences.serial,
        })
        .collect()
}

fn is_by_rate(load: &settings::Load) -> bool {
    matches!(load, settings::Load::RequestRate { .. } | settings::Load::CustomIntervals(_))
}

fn part(whole: usize, index: usize, of: usize) -> usize {
    whole / of + usize::from(index < whole % of)
}

/// Returns the largest possible number of connections.
fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::from(u32::MAX));
    limit.saturating_sub(SPARE_FILES).max(1) as usize
}

#[cfg(test)]
pub(super) mod tests;

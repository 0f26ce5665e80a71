//! Unloads model versions that no request can reach any more.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use galatea_scheduler::Scheduler;

use crate::{
    lifecycle::{Generation, Lifecycle},
    model_id::ModelId,
    repository::{FolderLease, LoadEvent},
};

/// The interval at which the log reports a version that still has requests to answer.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A version that no request can reach any more.
pub(crate) struct UnloadJob {
    pub model: ModelId,
    pub version: i64,
    pub generation: Generation,
    pub scheduler: Arc<dyn Scheduler>,
    /// The model's files, which it may read until it is dropped.
    pub lease: Arc<FolderLease>,
}

/// Takes versions to unload. Its thread ends when every copy is dropped.
#[derive(Clone)]
pub(crate) struct Unloader(mpsc::Sender<UnloadJob>);

impl Unloader {
    pub fn start(lifecycle: Arc<Lifecycle>) -> Self {
        let (sender, jobs) = mpsc::channel();
        let body = move || start_each(jobs, &lifecycle);
        if let Err(error) = thread::Builder::new().name("unloader".to_owned()).spawn(body) {
            log::error!("failed to start the thread that unloads models: {error}");
        }
        Self(sender)
    }

    /// Unloads a version in the background: its queue is closed, and its requests are answered first.
    pub fn unload(&self, job: UnloadJob) {
        // Without the thread nothing waits for the end; closing lets the instance threads end.
        if let Err(mpsc::SendError(job)) = self.0.send(job) {
            job.scheduler.close();
        }
    }
}

/// Unloads each on a thread of its own, because a slow model must not delay the others.
fn start_each(jobs: mpsc::Receiver<UnloadJob>, lifecycle: &Arc<Lifecycle>) {
    for job in jobs {
        let lifecycle = lifecycle.clone();
        let name = format!("unload {}", job.model);
        if let Err(error) = thread::Builder::new().name(name).spawn(move || run(job, &lifecycle)) {
            log::error!("failed to start a thread to unload a model: {error}");
        }
    }
}

/// Takes as long as the requests do; the exit deadline of the server limits it.
fn run(job: UnloadJob, lifecycle: &Lifecycle) {
    let UnloadJob { model, version, generation, scheduler, lease } = job;
    lease.tell(LoadEvent::Unload);
    scheduler.close();
    while !scheduler.drain(lifecycle.clock.now() + REPORT_INTERVAL) {
        log::warn!(
            model = *model.name, version;
            "'{model}' version {version} still has {} requests to answer",
            scheduler.in_flight()
        );
    }
    // The model's memory and files are free before it is reported as unloaded.
    drop(scheduler);
    drop(lease);
    log::info!(model = *model.name, version; "successfully unloaded '{model}' version {version}");
    lifecycle.unloaded(&model, version, generation);
}

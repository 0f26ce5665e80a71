use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::{lifecycle::Lifecycle, served_model::Retired};

/// Starts the thread that drains versions nobody can reach any more. It ends when the engine is gone.
pub(crate) fn start(retirements: mpsc::Receiver<Retired>, lifecycle: Arc<Lifecycle>) {
    let body = move || {
        for retired in retirements {
            // Each drains on a thread of its own: a model that takes its time must not hold up the others.
            let lifecycle = lifecycle.clone();
            let name = format!("drain {}", retired.model);
            if let Err(error) =
                thread::Builder::new().name(name).spawn(move || drain(retired, &lifecycle))
            {
                log::error!("failed to start a thread to unload a model: {error}");
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("reaper".to_owned()).spawn(body) {
        log::error!("failed to start the thread that unloads models: {error}");
    }
}

/// The queue is closed and what it holds is answered; the server's own exit deadline bounds the whole.
fn drain(retired: Retired, lifecycle: &Lifecycle) {
    let Retired { model, version, generation, scheduler } = retired;
    scheduler.close();
    while !scheduler.drain(Instant::now() + Duration::from_secs(60)) {
        log::warn!(
            "'{model}' version {version} still has {} requests to answer",
            scheduler.in_flight()
        );
    }
    // The model's memory is free before anybody is told that it is unloaded.
    drop(scheduler);
    log::info!("successfully unloaded '{model}' version {version}");
    lifecycle.unloaded(&model, version, generation);
}

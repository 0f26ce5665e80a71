//! Ends the server: requests in flight are answered, then every model is unloaded.

use std::time::{Duration, Instant};

use crate::{lifecycle::Lifecycle, ready_models::ReadyModels};

/// The interval at which the log reports, during an exit, the models still waited for; the same as Triton's.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Takes no more requests, and waits until those in flight are answered and every model is unloaded. Returns false if
/// `deadline` passes first.
pub(crate) fn run(models: &ReadyModels, lifecycle: &Lifecycle, deadline: Instant) -> bool {
    models.begin_exit();
    wait_for_requests(models, lifecycle, deadline);
    models.close();
    wait_for_unload(lifecycle, deadline)
}

/// Waits until no model has a request in flight, or `deadline` passes. New requests are taken meanwhile.
pub(crate) fn drain(models: &ReadyModels, lifecycle: &Lifecycle, deadline: Instant) {
    log::info!("Waiting for in-flight requests to complete.");
    wait_for_requests(models, lifecycle, deadline);
}

/// Waits until no model has a request in flight. A model may still send requests to other models, which must be
/// ready until then.
fn wait_for_requests(models: &ReadyModels, lifecycle: &Lifecycle, deadline: Instant) {
    let clock = &lifecycle.clock;
    let mut report_at = clock.now() + REPORT_INTERVAL;
    // Starts again after each wait, because the model may have called another one meanwhile.
    while let Some(busy) = models.all().into_iter().find(|model| model.in_flight() > 0) {
        if !busy.scheduler.wait_until_idle(report_at.min(deadline)) && clock.now() >= deadline {
            return;
        }
        if clock.now() >= report_at {
            report_at = clock.now() + REPORT_INTERVAL;
            report_live_models(lifecycle, deadline);
        }
    }
}

fn wait_for_unload(lifecycle: &Lifecycle, deadline: Instant) -> bool {
    let clock = &lifecycle.clock;
    while !lifecycle.wait_until_idle(deadline.min(clock.now() + REPORT_INTERVAL)) {
        if clock.now() >= deadline {
            return false;
        }
        report_live_models(lifecycle, deadline);
    }
    log::info!("All models are stopped, unloading models");
    true
}

fn report_live_models(lifecycle: &Lifecycle, deadline: Instant) {
    let left = lifecycle.clock.until(deadline).as_secs();
    log::info!("Timeout {left}: Found {} live models", lifecycle.live_count());
}

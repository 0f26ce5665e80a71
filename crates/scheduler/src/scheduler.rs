use std::{sync::Arc, time::Instant};

use galatea_backend::{InstanceSpec, Model};
use galatea_config::ModelConfig;
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, InferRequest, Responder, Result};

/// What a scheduler is made for.
pub struct SchedulerSpec {
    pub config: Arc<ModelConfig>,
    pub version: i64,
    pub model: Arc<dyn Model>,
    /// One thread is started for each.
    pub instances: Vec<InstanceSpec>,
    pub statistics: Arc<ModelStatistics>,
    /// Nothing is executed until this many requests are queued (S-23); 0 turns it off.
    pub hold_until_queued: usize,
}

/// The queue of one model version and the instance threads that pull from it.
pub struct Scheduler;

impl Scheduler {
    pub fn start(spec: SchedulerSpec) -> Result<Arc<Scheduler>> {
        let _ = spec;
        Err(Error::internal("being written"))
    }

    pub fn submit(&self, request: InferRequest, responder: Responder) {
        let _ = request;
        responder.finish(Err(Error::internal("being written")));
    }

    pub fn in_flight(&self) -> usize {
        0
    }

    pub fn close(&self) {}

    pub fn drain(&self, deadline: Instant) -> bool {
        let _ = deadline;
        true
    }
}

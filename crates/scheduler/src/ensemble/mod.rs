//! Ensembles: one request runs through a graph of models.
//!
//! There is no thread of its own here. A step is submitted as soon as all it reads is there, by the thread
//! that brought the last of it: the front end's for the first steps, then that of the model which answered.
//! Tensors go from step to step by reference; only their names and, at the border between models that batch
//! and models that do not, their shapes change.
//!
//! # Invariants
//! - Names are resolved at load: a request only works with numbers of steps and places of tensors.
//! - No lock is held while a model is asked or an answer is sent.
//! - An ensemble keeps the models it runs on until its last request is answered, so neither a reload nor an
//!   unload of one fails a request under way.

mod fit;
mod graph;
mod limiter;
mod plan;
mod round;
mod run;
mod sink;
mod work;

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{
    Error, PreparedRequest, Refused, RequestContext, Responder, Result, StepTimes,
};

use self::{graph::Graph, run::Run};
use crate::{Scheduler, accounting::RequestAccounting, failures};
pub use graph::StepModel;

/// What an ensemble is made of.
pub struct EnsembleSpec {
    /// The ensemble's own; its scheduling must be [`Scheduling::Ensemble`].
    pub config: Arc<ModelConfig>,
    pub version: i64,
    /// The model of each step, in the order of the configuration.
    pub models: Vec<StepModel>,
    pub statistics: Arc<ModelStatistics>,
}

/// Runs each request through the ensemble's graph.
pub struct EnsembleScheduler(Arc<Shared>);

/// What all requests of an ensemble share.
struct Shared {
    graph: Graph,
    version: i64,
    accounting: RequestAccounting,
    gate: Mutex<Gate>,
    answered: Condvar,
}

#[derive(Default)]
struct Gate {
    in_flight: usize,
    is_closed: bool,
    /// Threads that wait for the last request in flight; while there are none, nobody is notified.
    waiters: usize,
}

impl EnsembleScheduler {
    /// # Errors
    /// `InvalidArg` when a step would read tensors of different decoupled steps.
    pub fn new(spec: EnsembleSpec) -> Result<Self> {
        let EnsembleSpec { config, version, models, statistics } = spec;
        let Scheduling::Ensemble(ensembling) = config.scheduling() else {
            return Err(Error::internal(format!("model '{}' is no ensemble", config.name())));
        };
        if models.len() != ensembling.steps.len() {
            return Err(Error::internal(format!("ensemble '{}' lacks models", config.name())));
        }
        let graph = Graph::new(&config, ensembling, models)?;
        let (gate, answered) = (Mutex::default(), Condvar::new());
        let accounting = RequestAccounting::of_ensemble(statistics);
        Ok(Self(Arc::new(Shared { graph, version, accounting, gate, answered })))
    }
}

impl Scheduler for EnsembleScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        if self.0.enter() {
            Run::start(self.0.clone(), request, context, responder);
            return Ok(());
        }
        let error = failures::closed(&request.message_prefix());
        self.0.accounting.failed(&request.id, &mut context, FailureReason::Other, &error);
        Err(Refused::new(error, responder))
    }

    fn in_flight(&self) -> usize {
        self.0.lock().in_flight
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        let timeout = deadline.saturating_duration_since(Instant::now());
        let mut gate = self.0.lock();
        gate.waiters += 1;
        let is_busy = |gate: &mut Gate| gate.in_flight > 0;
        let waited = self.0.answered.wait_timeout_while(gate, timeout, is_busy);
        let mut gate = waited.unwrap_or_else(PoisonError::into_inner).0;
        gate.waiters -= 1;
        gate.in_flight == 0
    }

    fn close(&self) {
        self.0.lock().is_closed = true;
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        self.wait_until_idle(deadline)
    }
}

impl Shared {
    fn enter(&self) -> bool {
        let mut gate = self.lock();
        gate.in_flight += usize::from(!gate.is_closed);
        !gate.is_closed
    }

    fn leave(&self) {
        let mut gate = self.lock();
        gate.in_flight -= 1;
        if gate.in_flight == 0 && gate.waiters > 0 {
            self.answered.notify_all();
        }
    }

    /// Counts a request that is about to get its last response.
    fn count(
        &self,
        request: &PreparedRequest,
        context: &mut RequestContext,
        times: &StepTimes,
        error: Option<&Error>,
    ) {
        match error {
            None => self.accounting.ensemble_succeeded(request.batch_size(), context, times),
            Some(error) => {
                self.accounting.failed(&request.id, context, FailureReason::Other, error);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

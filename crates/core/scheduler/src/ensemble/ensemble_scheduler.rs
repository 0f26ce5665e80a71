//! The scheduler of an ensemble.

use std::{sync::Arc, time::Instant};

use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::{FailureReason, ModelStatistics};
use galatea_types::{Error, PreparedRequest, Refused, RequestContext, Responder, Result};

use super::{
    graph::{Graph, StepModel},
    run::Run,
    shared::Shared,
};
use crate::{accounting::RequestAccounting, request_failure::RequestFailure, scheduler::Scheduler};

/// The configuration, models and statistics of an ensemble.
pub struct EnsembleSpec {
    /// The ensemble's configuration; its scheduling must be [`Scheduling::Ensemble`].
    pub config: Arc<ModelConfig>,
    /// The ensemble's version.
    pub version: i64,
    /// The model of each step, in the order of the configuration.
    pub models: Vec<StepModel>,
    /// The statistics in which requests to the ensemble are counted.
    pub statistics: Arc<ModelStatistics>,
}

/// Runs each request through the ensemble's graph.
pub struct EnsembleScheduler(Arc<Shared>);

impl EnsembleScheduler {
    /// Resolves the graph.
    ///
    /// # Errors
    /// `InvalidArg` when a step would read tensors of different decoupled steps; `Internal` when the configuration
    /// is not that of an ensemble, or `models` are not those of its steps.
    pub fn new(spec: EnsembleSpec) -> Result<Self> {
        let EnsembleSpec { config, version, models, statistics } = spec;
        let Scheduling::Ensemble(ensembling) = config.scheduling() else {
            return Err(Error::internal(format!("model '{}' is not an ensemble", config.name())));
        };
        if models.len() != ensembling.steps.len() {
            return Err(Error::internal(format!("ensemble '{}' lacks models", config.name())));
        }
        let graph = Graph::new(&config, ensembling, models)?;
        let accounting = RequestAccounting::beside_executor(statistics);
        Ok(Self(Arc::new(Shared::new(graph, version, accounting))))
    }
}

impl Scheduler for EnsembleScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        if self.0.in_flight.enter() {
            Run::start(self.0.clone(), request, context, responder);
            return Ok(());
        }
        context.forgo_place();
        let error = RequestFailure::Closed { prefix: request.message_prefix() }.into();
        self.0.accounting.failed(&request.id, &mut context, FailureReason::Other, &error);
        Err(Refused::new(error, responder))
    }

    fn in_flight(&self) -> usize {
        self.0.in_flight.count()
    }

    /// Returns 0: the requests wait in the queues of the steps' models.
    fn release_abandoned(&self) -> usize {
        0
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.0.in_flight.wait_until_idle(deadline)
    }

    /// Does nothing: the models of the steps keep the sequences.
    fn expect_no_more(&self) {}

    fn close(&self) {
        self.0.in_flight.close();
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        self.wait_until_idle(deadline)
    }
}

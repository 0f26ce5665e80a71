//! State shared by all requests to an ensemble.

use std::sync::Arc;

use galatea_types::InferRequest;

use super::{graph::Graph, plan::Plan};
use crate::{accounting::RequestAccounting, in_flight::InFlight};

/// The graph of an ensemble and the counters over all its requests.
pub(super) struct Shared {
    pub graph: Graph,
    pub version: i64,
    pub accounting: RequestAccounting,
    pub in_flight: InFlight,
    /// The plan for requests that want every output.
    all_outputs: Arc<Plan>,
}

impl Shared {
    pub fn new(graph: Graph, version: i64, accounting: RequestAccounting) -> Self {
        let all_outputs = Arc::new(Plan::of(&graph, |_| true));
        let in_flight = InFlight::new(accounting.clock().clone());
        Self { graph, version, accounting, in_flight, all_outputs }
    }

    /// Returns the plan for the outputs that this request wants.
    pub fn plan_for(&self, request: &InferRequest) -> Arc<Plan> {
        let outputs = &self.graph.outputs;
        if outputs.iter().all(|output| request.wants_output(&output.name)) {
            return self.all_outputs.clone();
        }
        Arc::new(Plan::of(&self.graph, |name| request.wants_output(name)))
    }
}

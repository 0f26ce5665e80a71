//! A request of one step on its way to the step's model.

use std::sync::Arc;

use galatea_backend::InferTarget;
use galatea_types::{InferRequest, RequestContext, Responder};

use super::limiter::Limiter;

/// Where the requests of a step go.
#[derive(Clone)]
pub(super) struct StepTarget {
    pub model: Arc<dyn InferTarget>,
    pub limiter: Option<Arc<Limiter<Submission>>>,
}

/// A request of one step, with its responder.
pub(super) struct Submission {
    pub target: StepTarget,
    pub request: InferRequest,
    pub context: RequestContext,
    pub responder: Responder,
}

impl Submission {
    /// Sends the request, or keeps it until another one of the step ends.
    pub fn submit(self) {
        let admitted = match self.target.limiter.clone() {
            Some(limiter) => limiter.enter(self),
            None => Some(self),
        };
        if let Some(submission) = admitted {
            submission.send();
        }
    }

    /// Sends the request. A refusal is a response like any other.
    pub fn send(self) {
        let Self { target, request, context, responder } = self;
        if let Err(refused) = target.model.infer(request, context, responder) {
            refused.answer();
        }
    }
}

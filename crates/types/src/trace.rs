//! Where the timeline of a request goes when somebody wants to see it.

use std::{fmt, sync::Arc};

use crate::Timeline;

/// Records one request. It travels in the [`RequestContext`](crate::RequestContext) and is given back the
/// finished timeline exactly once.
pub trait Trace: fmt::Debug + Send + Sync {
    /// The request has ended: its last response is counted and about to be sent, or it was refused. What this
    /// does must be short: it runs on the thread that answers.
    fn finished(&self, timeline: &Timeline);

    /// The trace of a request that this one causes, to `model`: a step of an ensemble, a call of a model.
    /// `None` leaves that request without a trace.
    fn child(self: Arc<Self>, model: &str) -> Option<Arc<dyn Trace>>;
}

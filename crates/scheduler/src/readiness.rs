//! Whether requests to a model would be executed now, as it changes while instances break and are restarted.

use std::sync::Arc;

use crate::request_queue::RequestQueue;

/// Whether a model has an instance that works. Made by [`crate::QueueScheduler::readiness`].
#[derive(Clone)]
pub struct InstanceReadiness {
    queues: Vec<Arc<RequestQueue>>,
}

impl InstanceReadiness {
    pub(crate) fn new(queues: Vec<Arc<RequestQueue>>) -> Self {
        Self { queues }
    }

    /// Whether an instance works that would execute a request.
    pub fn has_working_instance(&self) -> bool {
        self.queues.iter().any(|queue| queue.has_working_instance())
    }
}

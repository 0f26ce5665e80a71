//! The place that an accepted request takes of its model's limit.

use std::fmt;

/// The place of a request in progress, which is free again when this is dropped.
pub trait HeldPlace: fmt::Debug + Send + Sync {
    /// Declares that the request is not executed, so that its end tells nothing about the model's speed.
    fn forgo(&mut self);
}

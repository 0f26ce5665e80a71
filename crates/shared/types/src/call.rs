//! The parts of a front end that an inference call uses: its sender, and its record.

use std::{sync::Arc, time::Instant};

use crate::{ClientShare, Identity, InferRequest, Protocol, RequestContext, Result};

/// The sender of an inference call, as its front end knows it.
pub trait Sender {
    /// The protocol that it speaks.
    const PROTOCOL: Protocol;

    /// Checks that the sender may ask `model` for inferences.
    ///
    /// # Errors
    /// The reason why it may not.
    fn check(&self, model: &str) -> Result<()>;

    /// Returns who the sender has proved to be.
    fn identity(&self) -> Option<&Arc<Identity>>;

    /// Returns the time until which the sender waits for the answer, if it has said so.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Takes the share of a request of `bytes` bytes from the sender's limits; `None` when the sender has no limits.
    ///
    /// # Errors
    /// The sender already uses as much of the server as it may.
    fn take_share(&mut self, bytes: usize) -> Result<Option<Box<ClientShare>>>;

    /// Adds the headers that the operator lets through to the parameters of `request`.
    ///
    /// # Errors
    /// A forwarded header would replace a field of the protocol.
    fn forward_headers(&self, request: &mut InferRequest) -> Result<()>;
}

/// The record that a front end keeps of a call.
pub trait CallRecord {
    /// Records the model that the call asks for, when no model was found or looked for.
    fn record_asked(&mut self, model: &str, version: Option<i64>);

    /// Records the version of the model that answers the call.
    fn record_model(&mut self, model: &Arc<str>, version: i64);

    /// Records that the model receives the request. Gives `context` the observers and the span of the call.
    fn record_submitted(&mut self, request: &InferRequest, context: &mut RequestContext);
}

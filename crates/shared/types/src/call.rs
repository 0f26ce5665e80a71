//! The sides of a front end that an inference call asks: who sends it, and the record that is kept of it.

use std::sync::Arc;

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

    /// Takes what a request of `bytes` bytes needs of the sender's limits; `None` where it has none.
    ///
    /// # Errors
    /// The sender has as much of the server as it may.
    fn take_share(&mut self, bytes: usize) -> Result<Option<Box<ClientShare>>>;

    /// Adds the headers that the operator lets through to the parameters of `request`.
    ///
    /// # Errors
    /// A header that would take the place of a field of the protocol.
    fn forward_headers(&self, request: &mut InferRequest) -> Result<()>;
}

/// The record that a front end keeps of a call.
pub trait CallRecord {
    /// Records the model that the call asks for, which was not found or not looked for.
    fn record_asked(&mut self, model: &str, version: Option<i64>);

    /// Records the version of the model that answers the call.
    fn record_model(&mut self, model: &Arc<str>, version: i64);

    /// Records that the model gets the request, and gives `context` the observers and the span of the call.
    fn record_submitted(&mut self, request: &InferRequest, context: &mut RequestContext);
}

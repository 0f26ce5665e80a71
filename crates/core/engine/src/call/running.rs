//! A call that its model works on, and its one answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use galatea_types::{CancelOnDrop, Error, InferResponse, Result};
use tokio::sync::oneshot;

use crate::ServedModel;

/// A call whose model has the request, with the plan by which its responses are encoded.
///
/// Dropped before [`RunningCall::end`], it cancels the request: the client hung up, or its deadline passed.
pub struct RunningCall<P> {
    pub(super) model: Arc<ServedModel>,
    pub(super) plan: P,
    pub(super) cancel: CancelOnDrop,
}

impl<P> RunningCall<P> {
    /// Returns the model that answers.
    pub fn model(&self) -> &Arc<ServedModel> {
        &self.model
    }

    /// Returns the plan by which the responses are encoded.
    pub fn plan(&self) -> &P {
        &self.plan
    }

    /// Ends the call: its last response is there.
    pub fn end(&mut self) {
        self.cancel.disarm();
    }

    /// Separates the plan from the call.
    pub fn split(self) -> (RunningCall<()>, P) {
        let Self { model, plan, cancel } = self;
        (RunningCall { model, plan: (), cancel }, plan)
    }
}

/// The answer to a call that has exactly one.
pub struct UnaryAnswer(pub(super) oneshot::Receiver<Result<InferResponse>>);

impl Future for UnaryAnswer {
    type Output = Result<InferResponse>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A responder answers also when it is dropped, so the channel never closes empty.
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|answer| answer.unwrap_or_else(|_| Err(Error::unanswered())))
    }
}

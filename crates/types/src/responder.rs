use tokio::sync::{mpsc, oneshot};

use crate::{Error, InferResponse, Result};

/// One element of a response stream: an answer, or `None` where only the end is told.
#[derive(Debug)]
pub struct Response {
    pub result: Option<Result<InferResponse>>,
    /// Nothing follows.
    pub is_final: bool,
}

/// Receiving end of a stream of responses (decoupled models, streaming front ends).
pub type ResponseStream = mpsc::UnboundedReceiver<Response>;

enum Sink {
    Unary(oneshot::Sender<Result<InferResponse>>),
    Stream(mpsc::UnboundedSender<Response>),
}

/// The way back to whoever asked. Dropped unanswered, it answers with an internal error, so that no
/// request can get lost.
pub struct Responder(Option<Sink>);

impl Responder {
    /// For exactly one answer.
    pub fn unary() -> (Self, oneshot::Receiver<Result<InferResponse>>) {
        let (tx, rx) = oneshot::channel();
        (Self(Some(Sink::Unary(tx))), rx)
    }

    /// For any number of answers.
    pub fn stream() -> (Self, ResponseStream) {
        let (tx, rx) = mpsc::unbounded_channel();
        (Self(Some(Sink::Stream(tx))), rx)
    }

    /// The last answer.
    pub fn finish(mut self, result: Result<InferResponse>) {
        self.send_last(Some(result));
    }

    /// An answer that others follow. On a unary responder it is the last one; `false` says it cannot
    /// take more.
    pub fn send(&mut self, result: Result<InferResponse>) -> bool {
        match &self.0 {
            Some(Sink::Stream(tx)) => {
                tx.send(Response { result: Some(result), is_final: false }).is_ok()
            }
            _ => {
                self.send_last(Some(result));
                false
            }
        }
    }

    /// Ends a stream without another answer.
    pub fn close(mut self) {
        if let Some(Sink::Stream(_)) = &self.0 {
            self.send_last(None);
        }
    }

    /// Whether nobody listens any more.
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            Some(Sink::Unary(tx)) => tx.is_closed(),
            Some(Sink::Stream(tx)) => tx.is_closed(),
            None => true,
        }
    }

    fn send_last(&mut self, result: Option<Result<InferResponse>>) {
        // A receiver that is gone has no use for the answer: nothing to do about a failed send.
        match self.0.take() {
            Some(Sink::Unary(tx)) => {
                let _ = tx.send(result.unwrap_or_else(|| Err(unanswered())));
            }
            Some(Sink::Stream(tx)) => {
                let _ = tx.send(Response { result, is_final: true });
            }
            None => {}
        }
    }
}

fn unanswered() -> Error {
    Error::internal("the request was dropped without a response")
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.send_last(Some(Err(unanswered())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_responder_answers() {
        let (responder, mut rx) = Responder::unary();
        drop(responder);
        let error = rx.try_recv().expect("answered").expect_err("an error");
        assert_eq!(error.code(), crate::Code::Internal);
    }

    #[test]
    fn a_closed_stream_ends_without_an_error() {
        let (responder, mut rx) = Responder::stream();
        responder.close();
        let last = rx.try_recv().expect("one element");
        assert!(last.is_final && last.result.is_none());
        assert!(rx.try_recv().is_err());
    }
}

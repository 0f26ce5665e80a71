use std::fmt;

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

/// Takes responses on the thread that made them: how ensembles and calls between models go on without
/// another hand-over. What it does must be short, and must not wait for the model that answers.
pub trait ResponseSink: Send {
    /// Called once per response; nothing follows one that is final.
    fn respond(&mut self, response: Response);

    /// Whether nobody wants the responses any more.
    fn is_closed(&self) -> bool {
        false
    }
}

enum Sink {
    Unary(oneshot::Sender<Result<InferResponse>>),
    Stream(mpsc::UnboundedSender<Response>),
    Call(Box<dyn ResponseSink>),
}

/// The way back to whoever asked. Dropped unanswered, it answers with an internal error, so that no
/// request can get lost.
pub struct Responder(Option<Sink>);

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

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

    /// For any number of answers, each given to `sink` at once.
    pub fn calling(sink: impl ResponseSink + 'static) -> Self {
        Self(Some(Sink::Call(Box::new(sink))))
    }

    /// The way back of a request whose responder was taken elsewhere: it answers nobody.
    pub fn spent() -> Self {
        Self(None)
    }

    /// The last answer.
    pub fn finish(mut self, result: Result<InferResponse>) {
        self.send_last(Some(result));
    }

    /// An answer that others follow. On a unary responder it is the last one; `false` says it cannot
    /// take more.
    pub fn send(&mut self, result: Result<InferResponse>) -> bool {
        let response = |result| Response { result: Some(result), is_final: false };
        match &mut self.0 {
            Some(Sink::Stream(tx)) => tx.send(response(result)).is_ok(),
            Some(Sink::Call(sink)) => {
                sink.respond(response(result));
                !sink.is_closed()
            }
            _ => {
                self.send_last(Some(result));
                false
            }
        }
    }

    /// Ends a stream without another answer.
    pub fn close(mut self) {
        if let Some(Sink::Stream(_) | Sink::Call(_)) = &self.0 {
            self.send_last(None);
        }
    }

    /// Lets go of whoever waits without sending anything: for a request that is answered by another way.
    pub fn discard(mut self) {
        self.0 = None;
    }

    /// Whether nobody listens any more.
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            Some(Sink::Unary(tx)) => tx.is_closed(),
            Some(Sink::Stream(tx)) => tx.is_closed(),
            Some(Sink::Call(sink)) => sink.is_closed(),
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
            Some(Sink::Call(mut sink)) => sink.respond(Response { result, is_final: true }),
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
    fn a_sink_is_called_for_each_response() {
        struct Noted(std::sync::Arc<std::sync::Mutex<Vec<(bool, bool)>>>);
        impl ResponseSink for Noted {
            fn respond(&mut self, response: Response) {
                let is_error = matches!(response.result, Some(Err(_)));
                self.0.lock().expect("no panic").push((is_error, response.is_final));
            }
        }
        let noted = std::sync::Arc::default();
        let mut responder = Responder::calling(Noted(std::sync::Arc::clone(&noted)));
        assert!(responder.send(Err(Error::internal("one"))));
        responder.close();
        drop(Responder::calling(Noted(noted.clone())));
        assert_eq!(*noted.lock().expect("no panic"), [(true, false), (false, true), (true, true)]);
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

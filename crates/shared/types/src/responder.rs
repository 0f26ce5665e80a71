//! The way of responses to their caller, of any kind.

use std::fmt;

use tokio::sync::oneshot;

use crate::{Error, InferResponse, Result};

/// A response to a request.
#[derive(Debug)]
pub struct Response {
    /// The result; `None` when only the end is reported.
    pub result: Option<Result<InferResponse>>,
    /// Nothing follows.
    pub is_final: bool,
}

/// Takes responses on the thread that made them: ensembles and calls between models continue without another hand-over. Its work
/// must be short, and must not wait for the model that answers.
pub trait ResponseSink: Send {
    /// Receives a response. Nothing follows a final one.
    fn respond(&mut self, response: Response);

    /// Returns whether nobody wants the responses any more.
    fn is_closed(&self) -> bool {
        false
    }
}

enum Sink {
    Unary(oneshot::Sender<Result<InferResponse>>),
    Call(Box<dyn ResponseSink>),
}

/// Sends the responses to a request to its caller. If it is dropped before the last one, it sends an internal error, so that no
/// request can get lost.
pub struct Responder(Option<Sink>);

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

impl Responder {
    /// Makes a responder for exactly one answer.
    pub fn unary() -> (Self, oneshot::Receiver<Result<InferResponse>>) {
        let (tx, rx) = oneshot::channel();
        (Self(Some(Sink::Unary(tx))), rx)
    }

    /// Makes a responder for any number of answers, each given to `sink` at once.
    pub fn calling(sink: impl ResponseSink + 'static) -> Self {
        Self(Some(Sink::Call(Box::new(sink))))
    }

    /// Makes a responder that sends nothing, in place of one that was taken elsewhere.
    pub fn spent() -> Self {
        Self(None)
    }

    /// Sends the last answer.
    pub fn finish(mut self, result: Result<InferResponse>) {
        self.send_last(Some(result));
    }

    /// Sends a response that others follow. On a unary responder it is the last one. Returns `false` when the responder can take
    /// no more.
    pub fn send(&mut self, result: Result<InferResponse>) -> bool {
        let result = result.map_err(Error::shortened);
        let response = |result| Response { result: Some(result), is_final: false };
        match &mut self.0 {
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
        if let Some(Sink::Call(_)) = &self.0 {
            self.send_last(None);
        }
    }

    /// Drops the channel to the caller without sending anything: the request is answered by other means.
    pub fn discard(mut self) {
        self.0 = None;
    }

    /// Returns whether nobody listens any more.
    pub fn is_closed(&self) -> bool {
        match &self.0 {
            Some(Sink::Unary(tx)) => tx.is_closed(),
            Some(Sink::Call(sink)) => sink.is_closed(),
            None => true,
        }
    }

    fn send_last(&mut self, result: Option<Result<InferResponse>>) {
        let result = result.map(|result| result.map_err(Error::shortened));
        // A receiver that is gone needs no answer, so a failed send is ignored.
        match self.0.take() {
            Some(Sink::Unary(tx)) => {
                let _ = tx.send(result.unwrap_or_else(|| Err(Error::unanswered())));
            }
            Some(Sink::Call(mut sink)) => sink.respond(Response { result, is_final: true }),
            None => {}
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.send_last(Some(Err(Error::unanswered())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_responder_sends_an_error() {
        let (responder, mut rx) = Responder::unary();
        drop(responder);
        let error = rx.try_recv().expect("answered").expect_err("an error");
        assert_eq!(error.code(), crate::Code::Internal);
    }

    #[test]
    fn a_sink_is_called_for_each_response_until_the_end() {
        type Seen = std::sync::Arc<std::sync::Mutex<Vec<(Option<bool>, bool)>>>;
        struct Noted(Seen);
        impl ResponseSink for Noted {
            fn respond(&mut self, response: Response) {
                let is_error = response.result.map(|result| result.is_err());
                self.0.lock().expect("no panic").push((is_error, response.is_final));
            }
        }
        let seen = Seen::default();
        let mut responder = Responder::calling(Noted(seen.clone()));
        assert!(responder.send(Err(Error::internal("one"))));
        responder.close();
        drop(Responder::calling(Noted(seen.clone())));
        Responder::calling(Noted(seen.clone())).discard();
        let expected = [(Some(true), false), (None, true), (Some(true), true)];
        assert_eq!(*seen.lock().expect("no panic"), expected);
    }
}

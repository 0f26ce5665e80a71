//! A refusal as a return value: the caller that submits a request learns at once that nothing will be executed.

use crate::{Error, Responder};

/// A request that was refused before anything was executed for it, and the responder it came with, unused.
///
/// A refusal is reported here and only here: nothing was sent through the responder.
#[derive(Debug)]
#[must_use = "nobody has answered the request yet"]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// Where an answer would have gone.
    pub responder: Responder,
}

impl Refused {
    /// A refusal for the reason `error`.
    pub fn new(error: Error, responder: Responder) -> Self {
        Self { error, responder }
    }

    /// Sends the error through the responder: for callers that treat a refusal like any other failure.
    pub fn answer(self) {
        self.responder.finish(Err(self.error));
    }

    /// The error alone. Nothing goes through the responder: for callers that report the error by other means.
    pub fn into_error(self) -> Error {
        self.responder.discard();
        self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_answered_with_its_error() {
        let (responder, mut answer) = Responder::unary();
        Refused::new(Error::unavailable("full"), responder).answer();
        let error = answer.try_recv().expect("answered").expect_err("refused");
        assert_eq!(error.message(), "full");
    }

    #[test]
    fn a_refusal_taken_as_an_error_sends_nothing() {
        let (responder, mut answer) = Responder::unary();
        let error = Refused::new(Error::unavailable("full"), responder).into_error();
        assert_eq!(error.message(), "full");
        assert!(answer.try_recv().is_err());
    }
}

//! A refusal as a return value: the caller learns at once that its request will not be executed.

use crate::{Error, Responder};

/// A request that was refused before anything was executed for it, with its unused responder.
///
/// Only this value reports a refusal: nothing was sent through the responder.
#[derive(Debug)]
#[must_use = "nobody has answered the request yet"]
pub struct Refused {
    /// The reason.
    pub error: Error,
    /// The responder for an answer.
    pub responder: Responder,
}

impl Refused {
    /// Makes a refusal for the reason `error`.
    pub fn new(error: Error, responder: Responder) -> Self {
        Self { error, responder }
    }

    /// Sends the error through the responder: for callers that treat a refusal like any other failure.
    pub fn answer(self) {
        self.responder.finish(Err(self.error));
    }

    /// Returns the error alone, for callers that report it by other means. Nothing goes through the responder.
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

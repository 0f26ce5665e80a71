//! The answer of a call, and the record that reports the call.

use std::{
    future,
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};

use galatea_frontend::catch_panic_in_poll;
use http::Response;
use tonic::Status;

use crate::{
    content::Content,
    panicked::{CALL, INTERNAL_ERROR},
    told::CallRecord,
    unary_infer::UnaryInfer,
};

pub(crate) type CallOutcome = Result<Response<Content>, Status>;

#[allow(clippy::large_enum_variant, reason = "in place: most calls are of the large kind")]
pub(crate) enum Answer {
    /// Stored in place: the most frequent kind of call needs no allocation.
    Infer(UnaryInfer),
    /// A future of its own kind, since very many may wait for their messages.
    Other(Pin<Box<dyn Future<Output = CallOutcome> + Send>>),
}

impl Answer {
    pub fn other(answer: impl Future<Output = CallOutcome> + Send + 'static) -> Self {
        Self::Other(Box::pin(answer))
    }

    pub fn refused(status: Status) -> Self {
        Self::other(future::ready(Err(status)))
    }

    /// Polls for the response. The caller catches panics.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CallOutcome> {
        match self {
            Self::Infer(infer) => infer.poll(cx),
            Self::Other(answer) => answer.as_mut().poll(cx),
        }
    }
}

pub(crate) struct AnsweringCall {
    /// The answer; `None` after a panic.
    pub answer: Option<Answer>,
    pub told: CallRecord,
}

impl AnsweringCall {
    /// An answer that panics is dropped while it unwinds: its record then reports a panic.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<Content>> {
        struct PanicGuard<'a>(&'a mut Option<Answer>);

        impl Drop for PanicGuard<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    *self.0 = None;
                }
            }
        }

        let answer = &mut self.answer;
        let polled = catch_panic_in_poll(CALL, || match PanicGuard(answer).0 {
            Some(answer) => answer.poll(cx),
            None => Poll::Ready(Err(Status::internal(INTERNAL_ERROR))),
        });
        let answered = match polled {
            Some(polled) => ready!(polled),
            None => Err(Status::internal(INTERNAL_ERROR)),
        };
        Poll::Ready(self.told.response_of(answered, Content::size))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use galatea_frontend::{Peer, RequestLog, recent_failures};

    use super::*;

    #[test]
    fn a_panic_is_answered_and_told_as_one() {
        let call = galatea_frontend::Call { protocol: "grpc", method: "", path: "/a.Test/Panic" };
        let exchange = RequestLog::default().begin(Peer::Unix, &call, None);
        let answer = Answer::Other(Box::pin(async move {
            assert!(std::hint::black_box(false), "in what answers");
            drop(exchange);
            Err(Status::ok(""))
        }));
        let mut answering = AnsweringCall { answer: Some(answer), told: CallRecord::default() };
        let polled = answering.poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(response) = polled else { unreachable!("it has panicked") };
        assert_eq!(response.headers()[Status::GRPC_STATUS], "13");
        assert!(answering.answer.is_none());
        let told = recent_failures().since(0);
        assert!(told.iter().any(|call| &*call.reason == "internal error: the handler of this request panicked"));
    }
}

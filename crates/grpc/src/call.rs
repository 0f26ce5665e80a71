//! One call, from its head until its response has gone out.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread,
};

use bytes::Bytes;
use galatea_frontend::{
    Activity, CallGuard, Client, ConnectionAccount, RequestGuard, catch_panic_in_poll,
};
use galatea_types::MemoryReservation;
use h2::{RecvStream, server::SendResponse};
use http::{Request, Response};
use tonic::Status;

use crate::{
    content::Content,
    dispatch::{Answer, Begun, Dispatcher},
    sending::{SendError, Sending},
    told::Told,
    unread::Unread,
};

/// The name of a call in the log.
pub(crate) const CALL: &str = "a gRPC call";
pub(crate) const INTERNAL_ERROR: &str = "an internal error ended this call";

/// What the calls of one connection share.
pub(crate) struct ConnectionContext {
    pub dispatcher: Arc<Dispatcher>,
    pub client: Client,
    pub account: ConnectionAccount,
    pub activity: Arc<Activity>,
    pub unread: Arc<Unread>,
}

/// What a call holds until its response has gone out.
pub(crate) struct Held {
    /// Unless the exit need not wait for it.
    pub guard: Option<RequestGuard>,
    pub memory: MemoryReservation,
}

impl Held {
    /// Its response is there.
    fn has_content(&mut self, content: &Content) {
        if let Content::Message(message) = content {
            self.memory.grow(message.size());
        }
        // A stream counts itself while it has requests.
        if content.is_lasting() {
            self.guard = None;
        }
    }
}

/// A call. Dropped, or ended because nobody wants the answer any more, it resets its stream and cancels what was asked.
///
/// Not an `async fn`, which would be several times the size: this is moved into its place for every call.
pub(crate) struct Call {
    stage: Stage,
    respond: SendResponse<Bytes>,
    context: Arc<ConnectionContext>,
    held: Held,
    _counted: CallGuard,
}

#[allow(clippy::large_enum_variant, reason = "in place: most calls are of the large kind")]
enum Stage {
    Begun(Option<Request<RecvStream>>),
    /// Until the server has started.
    Waiting(Pin<Box<dyn Future<Output = Begun> + Send>>),
    Answering(Answering),
    Sending(Sending),
}

/// What makes a response, and what tells of it.
pub(crate) struct Answering {
    /// Unless it has panicked.
    pub answer: Option<Answer>,
    pub told: Told,
}

impl Call {
    pub fn new(
        context: &Arc<ConnectionContext>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let memory = context.dispatcher.memory().reservation();
        Self {
            stage: Stage::Begun(Some(request)),
            respond,
            context: context.clone(),
            held: Held { guard: None, memory },
            _counted: context.activity.begin_call(),
        }
    }

    fn poll_stages(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        loop {
            let polled = match &mut self.stage {
                Stage::Begun(request) => {
                    let Some(request) = request.take() else { return Poll::Ready(Ok(())) };
                    Poll::Ready(Dispatcher::begin(&self.context, request, &mut self.held))
                }
                Stage::Waiting(waiting) => waiting.as_mut().poll(cx),
                Stage::Answering(answering) => answering.poll(cx).map(Begun::Answered),
                Stage::Sending(sending) => return sending.poll(cx),
            };
            let Poll::Ready(begun) = polled else { return self.poll_given_up(cx) };
            self.stage = match begun {
                Begun::Waiting(waiting) => Stage::Waiting(waiting),
                Begun::Answering(answering) => Stage::Answering(answering),
                Begun::Answered(response) => match self.send(response)? {
                    Some(sending) => Stage::Sending(sending),
                    None => return Poll::Ready(Ok(())),
                },
            };
        }
    }

    /// Whether the client has given the call up.
    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.respond.poll_reset(cx))?;
        Poll::Ready(Err(SendError::GivenUp))
    }

    fn send(&mut self, response: Response<Content>) -> Result<Option<Sending>, SendError> {
        self.held.has_content(response.body());
        let settings = self.context.dispatcher.connection_settings();
        Sending::begin(response, &mut self.respond, settings)
    }
}

impl Future for Call {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let ended = ready!(self.poll_stages(cx));
        if let Err(error) = ended {
            log::debug!("grpc: ended a call: {error}");
        }
        Poll::Ready(())
    }
}

impl Answering {
    /// What panics is dropped while it does: that is how it is told what has become of it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<Content>> {
        struct DroppedInPanic<'a>(&'a mut Option<Answer>);

        impl Drop for DroppedInPanic<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    *self.0 = None;
                }
            }
        }

        let answer = &mut self.answer;
        let polled = catch_panic_in_poll(CALL, || match DroppedInPanic(answer).0 {
            Some(answer) => answer.poll(cx),
            None => Poll::Ready(Err(Status::internal(INTERNAL_ERROR))),
        });
        let answered = match polled {
            Some(polled) => ready!(polled),
            None => Err(Status::internal(INTERNAL_ERROR)),
        };
        Poll::Ready(self.told.response_of(answered))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use galatea_frontend::{Peer, RequestLog, recent_failures};

    use super::*;
    use crate::dispatch::CALL_WEIGHT;

    #[test]
    fn an_open_call_takes_what_it_is_counted_for_and_is_quickly_moved() {
        let size = size_of::<Call>();
        assert!(size < CALL_WEIGHT / 4, "{size}");
    }

    #[test]
    fn a_panic_is_answered_and_told_as_one() {
        let call = galatea_frontend::Call { protocol: "grpc", method: "", path: "/a.Test/Panic" };
        let exchange = RequestLog::default().begin(Peer::Unix, &call, None);
        let answer = Answer::Other(Box::pin(async move {
            assert!(std::hint::black_box(false), "in what answers");
            drop(exchange);
            Err(Status::ok(""))
        }));
        let mut answering = Answering { answer: Some(answer), told: Told::default() };
        let polled = answering.poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(response) = polled else { unreachable!("it has panicked") };
        assert_eq!(response.headers()[Status::GRPC_STATUS], "13");
        assert!(answering.answer.is_none());
        let told = recent_failures().since(0);
        assert!(told.iter().any(|call| &*call.reason == "what was to answer has panicked"));
    }
}

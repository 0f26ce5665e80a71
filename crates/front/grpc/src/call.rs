//! One call, from its head until its response is sent.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_frontend::CallGuard;
use h2::{RecvStream, server::SendResponse};
use http::{Request, Response};

use crate::{
    answer::AnsweringCall,
    content::Content,
    dispatch::{CallResources, CallStart, ConnectionContext, Dispatcher},
    response_writer::{ResponseWriter, SendError},
};

/// A call. If it is dropped, or ends because nobody wants the answer any more, it resets its stream and cancels its request.
///
/// Not an `async fn`, which would be several times the size: it is moved into its place for every call.
pub(crate) struct Call {
    stage: CallStage,
    respond: SendResponse<Bytes>,
    context: Arc<ConnectionContext>,
    held: CallResources,
    _counted: CallGuard,
}

#[allow(clippy::large_enum_variant, reason = "in place: most calls are of the large kind")]
enum CallStage {
    Begun(Option<Request<RecvStream>>),
    /// Waits until the server has started.
    Waiting(Pin<Box<dyn Future<Output = CallStart> + Send>>),
    Answering(AnsweringCall),
    Sending(ResponseWriter),
}

impl Call {
    pub fn new(
        context: &Arc<ConnectionContext>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Self {
        let memory = context.dispatcher.state.options.memory.reservation();
        Self {
            stage: CallStage::Begun(Some(request)),
            respond,
            context: context.clone(),
            held: CallResources { guard: None, memory },
            _counted: context.activity.begin_call(),
        }
    }

    fn poll_stages(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        loop {
            let polled = match &mut self.stage {
                CallStage::Begun(request) => {
                    let Some(request) = request.take() else { return Poll::Ready(Ok(())) };
                    Poll::Ready(Dispatcher::begin(&self.context, request, &mut self.held))
                }
                CallStage::Waiting(waiting) => waiting.as_mut().poll(cx),
                CallStage::Answering(answering) => answering.poll(cx).map(CallStart::Answered),
                CallStage::Sending(sending) => return sending.poll(cx),
            };
            let Poll::Ready(begun) = polled else { return self.poll_given_up(cx) };
            self.stage = match begun {
                CallStart::Waiting(waiting) => CallStage::Waiting(waiting),
                CallStart::Answering(answering) => CallStage::Answering(answering),
                CallStart::Answered(response) => match self.send(response)? {
                    Some(sending) => CallStage::Sending(sending),
                    None => return Poll::Ready(Ok(())),
                },
            };
        }
    }

    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        ready!(self.respond.poll_reset(cx))?;
        Poll::Ready(Err(SendError::GivenUp))
    }

    fn send(&mut self, response: Response<Content>) -> Result<Option<ResponseWriter>, SendError> {
        self.held.count_content(response.body());
        let settings = self.context.dispatcher.state.options.limits.settings();
        ResponseWriter::begin(response, &mut self.respond, settings)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::CALL_WEIGHT;

    #[test]
    fn an_open_call_is_small() {
        let size = size_of::<Call>();
        assert!(size < CALL_WEIGHT / 4, "{size}");
    }
}

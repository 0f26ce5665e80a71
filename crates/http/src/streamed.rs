//! Bodies that are written while the model still works.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_engine::ServedModel;
use galatea_frontend::{CallGuard, RequestGuard};
use galatea_types::Response;
use http_body::Frame;

use crate::response_stream::ResponseStream;

/// Writes a response as a piece of a body; `None` where there is nothing to write.
pub(crate) type WriteResponse = Box<dyn FnMut(Response) -> Option<Vec<u8>> + Send>;

/// A body of a piece per response, each handed over as soon as it is there. Dropped before its end, it
/// cancels the request: the client has gone.
pub(crate) struct StreamedBody {
    responses: ResponseStream,
    /// Taken before the body began, because the status depended on it.
    first: Option<Response>,
    write: WriteResponse,
    is_ended: bool,
    _held: Held,
    call: Option<CallGuard>,
}

/// The request is being answered, and its model in use, until the last piece is handed over.
pub(crate) type Held = (RequestGuard, Arc<ServedModel>);

impl StreamedBody {
    pub fn new(
        first: Response,
        responses: ResponseStream,
        write: WriteResponse,
        held: Held,
    ) -> Self {
        Self { responses, first: Some(first), write, is_ended: false, _held: held, call: None }
    }

    /// The connection is busy until the body has ended.
    pub fn hold(&mut self, call: CallGuard) {
        self.call = Some(call);
    }

    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while !self.is_ended {
            let response = match self.first.take() {
                Some(response) => response,
                None => ready!(self.responses.poll_next(context)),
            };
            self.is_ended = response.is_final;
            if let Some(piece) = (self.write)(response) {
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
        }
        Poll::Ready(None)
    }

    pub fn is_end_stream(&self) -> bool {
        self.is_ended
    }
}

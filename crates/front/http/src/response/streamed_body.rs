//! Bodies that are sent while the model still works.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use galatea_frontend::{Answer, Call, Exchange, HeavyWork, HeavyWorkError, RequestGuard};
use galatea_types::{MemoryBudget, Response};

use crate::{
    response::{counted_bytes::counted, stream::ResponseStream},
    state::{PROTOCOL, ServerState},
};

/// The call in the log. The model is known from the record.
const STREAM: Call<'_> = Call { protocol: PROTOCOL, method: "", path: "a stream of responses" };

/// Encodes a response as a piece of a body. Returns `None` if there is nothing to send.
pub(crate) type WriteResponse = Arc<dyn Fn(Response) -> Option<Vec<u8>> + Send + Sync>;

type Writing = Pin<Box<dyn Future<Output = Result<Option<Vec<u8>>, HeavyWorkError>> + Send>>;

/// A body with one piece per response, each sent as soon as it exists. Dropping this before its end cancels the
/// request, because the client has disconnected.
pub(crate) struct StreamedBody {
    responses: ResponseStream,
    /// The first response, which was taken earlier because the status depends on it.
    first: Option<Response>,
    write: WriteResponse,
    /// A long response that another thread is encoding.
    writing: Option<Writing>,
    heavy_work: Arc<HeavyWork>,
    memory: Arc<MemoryBudget>,
    is_ended: bool,
    _in_flight: RequestGuard,
    exchange: Exchange,
    status: u16,
}

impl StreamedBody {
    pub fn new(
        state: &ServerState,
        first: Response,
        responses: ResponseStream,
        write: WriteResponse,
    ) -> Self {
        Self {
            responses,
            first: Some(first),
            write,
            writing: None,
            heavy_work: state.options.heavy_work.clone(),
            memory: state.options.memory.clone(),
            is_ended: false,
            _in_flight: state.in_flight.begin(),
            exchange: Exchange::default(),
            status: 0,
        }
    }

    /// Hands the record of the request to this body. `status` is that of its head.
    pub fn tell_by(&mut self, exchange: Exchange, status: u16) {
        (self.exchange, self.status) = (exchange, status);
    }

    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            let piece = match &mut self.writing {
                Some(writing) => {
                    let written = ready!(writing.as_mut().poll(context));
                    self.writing = None;
                    match written {
                        Ok(piece) => piece,
                        Err(error) => {
                            log::warn!(
                                "the server ended a stream of responses early, because it could not write one: {error}"
                            );
                            self.is_ended = true;
                            None
                        }
                    }
                }
                None if self.is_ended => return Poll::Ready(None),
                None => {
                    let response = match self.first.take() {
                        Some(response) => response,
                        None => ready!(self.responses.poll_next(context)),
                    };
                    self.is_ended = response.is_final;
                    self.begin_writing(response)
                }
            };
            if let Some(piece) = piece {
                self.exchange.record_sent(piece.len());
                return Poll::Ready(Some(counted(piece.into(), &self.memory)));
            }
        }
    }

    /// Returns the piece of a short response. A long one is encoded by another thread.
    fn begin_writing(&mut self, response: Response) -> Option<Vec<u8>> {
        if let Some(Err(error)) = &response.result {
            self.exchange.report_failure(error, &STREAM);
        }
        if !HeavyWork::is_heavy(bytes_of(&response)) {
            return (self.write)(response);
        }
        let write = self.write.clone();
        self.writing = Some(Box::pin(self.heavy_work.run(move || write(response))));
        None
    }

    pub fn is_ended(&self) -> bool {
        self.is_ended && self.writing.is_none()
    }
}

/// A body that is dropped before its end has lost its client.
impl Drop for StreamedBody {
    fn drop(&mut self) {
        if self.is_ended() {
            let (status, is_good) = (self.status, self.status < 400);
            let answer = Answer { status, bytes: 0, is_good, failure: None };
            self.exchange.finish(|| STREAM, &answer);
        }
    }
}

/// Returns the bytes of the outputs.
pub(crate) fn bytes_of(response: &Response) -> usize {
    match &response.result {
        Some(Ok(response)) => response.byte_size(),
        _ => 0,
    }
}

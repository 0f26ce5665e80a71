//! An HTTP/1.1 connection that is opened again when needed.

use std::{
    io::{self, IoSlice},
    os::fd::BorrowedFd,
    rc::Rc,
    slice,
    time::Instant,
};

use bytes::{Bytes, BytesMut};
use galatea_types::{Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    HttpInfer, checked,
    descriptor::{no_descriptors, send_with_descriptor},
    not_http, outputs,
    parser::{ParseProgress, Response, ResponseParser},
    request::request_line,
};
use crate::{
    CallTimes, InferMark, KeepResponse, Reply,
    response_error::ResponseError,
    transport::{Route, Transport},
};

/// Free capacity of every read, and the most that is reserved for an announced response.
const MIN_READ: usize = 4 << 10;
const INITIAL_READ: usize = 32 << 10;
const MAX_READ: usize = 16 << 20;

pub(crate) struct HttpConnection {
    pub(super) route: Rc<Route>,
    /// Absent while a request is in flight, so that one given up half-way closes its connection.
    io: Option<Transport>,
    buffer: BytesMut,
    scratch: Vec<u8>,
}

/// The parts of a request as they are sent.
#[derive(Clone)]
struct RequestBytes<'a> {
    /// The head, and the body if it is short.
    front: &'a [u8],
    /// The tensors of the body.
    tail: slice::Iter<'a, Bytes>,
    /// A descriptor that goes with the first bytes over a Unix socket.
    descriptor: Option<BorrowedFd<'a>>,
}

/// The reason why an attempt failed, and `began`: part of a response had come.
struct Failure {
    began: bool,
    error: Error,
}

impl HttpConnection {
    pub fn new(route: Rc<Route>) -> Self {
        let buffer = BytesMut::with_capacity(INITIAL_READ);
        Self { route, io: None, buffer, scratch: Vec::new() }
    }

    pub async fn connect(&mut self) -> Result<()> {
        self.io = Some(self.route.connect().await?);
        Ok(())
    }

    pub async fn infer(
        &mut self,
        request: &HttpInfer,
        mark: InferMark,
        keep: KeepResponse,
    ) -> Result<Reply> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let front = request.front(mark, &mut scratch);
        let outgoing = RequestBytes { front, tail: request.tail(), descriptor: None };
        let result = self.call(outgoing, keep == KeepResponse::Outputs).await;
        self.scratch = scratch;
        let (response, times) = result?;
        checked(&response, "the inference request")?;
        let outputs = match keep {
            KeepResponse::Nothing => Vec::new(),
            KeepResponse::Outputs => outputs::decode(response.body, response.header_length)?,
        };
        Ok(Reply { times, outputs })
    }

    /// Sends another request. `path` follows the target's base path.
    pub async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> Result<Response> {
        let mut request = request_line(&self.route.target, method, path)?;
        request.push_str(&body.map_or_else(|| "\r\n".to_owned(), json_body));
        Ok(self.call(RequestBytes::of_text(&request), true).await?.0)
    }

    /// Posts JSON and passes a descriptor with it, which the server gets as one of its own.
    ///
    /// # Errors
    /// If the target is not a plain Unix socket.
    pub async fn post_with_descriptor(
        &mut self,
        path: &str,
        body: &str,
        descriptor: BorrowedFd<'_>,
    ) -> Result<Response> {
        if !self.route.passes_descriptors() {
            return Err(no_descriptors(&self.route.target.url()));
        }
        let mut request = request_line(&self.route.target, "POST", path)?;
        request.push_str(&json_body(body));
        let outgoing =
            RequestBytes { descriptor: Some(descriptor), ..RequestBytes::of_text(&request) };
        Ok(self.call(outgoing, true).await?.0)
    }

    /// Sends a request and returns the connection, from which the caller reads the response.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<Transport> {
        let mut request = request_line(&self.route.target, method, path)?;
        request.push_str(&json_body(body));
        let mut io = self.route.connect().await?;
        let sent = send(&mut io, RequestBytes::of_text(&request)).await;
        sent.map_err(|cause| self.broken("sending to", cause))?;
        Ok(io)
    }

    /// Sends the request, once more if the server had closed an idle connection.
    async fn call(
        &mut self,
        outgoing: RequestBytes<'_>,
        keep_body: bool,
    ) -> Result<(Response, CallTimes)> {
        let start = Instant::now();
        let was_idle = self.io.is_some();
        let mut result = self.attempt(start, outgoing.clone(), keep_body).await;
        if was_idle && result.as_ref().is_err_and(|failure| !failure.began) {
            result = self.attempt(start, outgoing, keep_body).await;
        }
        result.map_err(|failure| failure.error)
    }

    async fn attempt(
        &mut self,
        start: Instant,
        outgoing: RequestBytes<'_>,
        keep_body: bool,
    ) -> Result<(Response, CallTimes), Failure> {
        let mut io = match self.io.take() {
            Some(io) => io,
            None => self.route.connect().await.map_err(|error| Failure { began: false, error })?,
        };
        let written = send(&mut io, outgoing).await;
        let sent = Instant::now();
        let received = self.receive(&mut io, keep_body).await;
        let (response, first_byte) = match (received, written) {
            (Ok(received), _) => received,
            // A server may refuse a request before it has read it all: its response is a better explanation than the
            // broken pipe.
            (Err(failure), Err(cause)) if !failure.began => {
                return Err(Failure { began: false, error: self.broken("sending to", cause) });
            }
            (Err(failure), _) => return Err(failure),
        };
        let end = Instant::now();
        if response.keep_alive && self.buffer.is_empty() {
            self.io = Some(io);
        }
        Ok((response, CallTimes { start, sent, first_byte, end }))
    }

    async fn receive(
        &mut self,
        io: &mut Transport,
        keep_body: bool,
    ) -> Result<(Response, Instant), Failure> {
        self.buffer.clear();
        let mut parser = ResponseParser::new(keep_body);
        let mut first_byte = None;
        let mut missing = MIN_READ;
        let mut left = self.route.response_limit;
        loop {
            self.buffer.reserve(missing.clamp(MIN_READ, MAX_READ));
            let began = first_byte.is_some();
            let count = io
                .read_buf(&mut self.buffer)
                .await
                .map_err(|cause| Failure { began, error: self.broken("receiving from", cause) })?;
            let at = *first_byte.get_or_insert_with(Instant::now);
            if count == 0 && !began {
                let cause = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(Failure {
                    began,
                    error: self.broken("waiting for an answer of", cause),
                });
            }
            left = left.checked_sub(count).ok_or_else(|| Failure {
                began: true,
                error: ResponseError::TooLong { limit: self.route.response_limit }.into(),
            })?;
            let progress = match count {
                0 => parser.end(&mut self.buffer).map(ParseProgress::Done),
                _ => parser.advance(&mut self.buffer),
            };
            match progress {
                Ok(ParseProgress::Done(response)) => return Ok((response, at)),
                Ok(ParseProgress::More(bytes)) => missing = bytes,
                Err(malformed) => {
                    let error = not_http(malformed, &self.route.target.url());
                    return Err(Failure { began: true, error });
                }
            }
        }
    }

    fn broken(&self, doing: &str, cause: io::Error) -> Error {
        let what = match cause.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".to_owned(),
            _ => cause.to_string(),
        };
        Error::unavailable(format!("failed while {doing} {}: {what}", self.route.target.url()))
            .with_source(cause)
    }
}

/// Returns the rest of a request with this body.
fn json_body(body: &str) -> String {
    format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

impl<'a> RequestBytes<'a> {
    /// A request that is one text.
    fn of_text(text: &'a str) -> Self {
        Self { front: text.as_bytes(), tail: [].iter(), descriptor: None }
    }
}

/// Sends without copying, small requests with one write.
async fn send(io: &mut Transport, outgoing: RequestBytes<'_>) -> io::Result<()> {
    let RequestBytes { mut front, tail, descriptor } = outgoing;
    if let Some(descriptor) = descriptor {
        let count = send_with_descriptor(io, front, descriptor).await?;
        front = front.get(count..).unwrap_or_default();
    }
    if tail.len() == 0 {
        io.write_all(front).await?;
    } else {
        let mut slices = vec![IoSlice::new(front)];
        slices.extend(tail.map(|bytes| IoSlice::new(bytes)));
        let mut left = slices.as_mut_slice();
        // Empty slices at the front are dropped, so that a write of nothing means a closed connection.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            match io.write_vectored(left).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => IoSlice::advance_slices(&mut left, count),
            }
        }
    }
    io.flush().await
}

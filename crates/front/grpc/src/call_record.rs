//! The reports about a call: its line in the access log, and its line if it failed.

use galatea_frontend::{
    AccessError, Answer, ApiCategory, Call, Exchange, Peer, RequestLog, Subject,
};
use galatea_types::{Code, Error, InferResponse, Result, TraceContext};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::Status;

use crate::{route::Route, status::status_of};

const PROTOCOL: &str = "grpc";
const TRACEPARENT: HeaderName = HeaderName::from_static(TraceContext::HEADER);
const TRACESTATE: HeaderName = HeaderName::from_static(TraceContext::STATE_HEADER);
/// The name in the log of a call that does not exist.
const UNKNOWN_CALL: &str = "an unknown gRPC call";

#[derive(Debug)]
pub(crate) struct CallRecord {
    pub exchange: Exchange,
    name: &'static str,
    /// The status of the last failed response.
    status: tonic::Code,
}

impl Default for CallRecord {
    fn default() -> Self {
        Self { exchange: Exchange::default(), name: UNKNOWN_CALL, status: tonic::Code::Ok }
    }
}

impl CallRecord {
    pub fn begin<B>(
        requests: &RequestLog,
        peer: Peer,
        request: &Request<B>,
        route: Option<Route>,
    ) -> Self {
        let call = Call {
            protocol: PROTOCOL,
            method: request.method().as_str(),
            path: request.uri().path(),
        };
        let mut exchange = requests.begin(peer, &call, client_span(request.headers()));
        if route.is_some_and(|route| route.category() == ApiCategory::Health) {
            exchange.mark_routine();
        }
        let name = route.map_or(UNKNOWN_CALL, Route::name);
        Self { exchange, name, ..Self::default() }
    }

    /// Returns a record that reports this call from now on, in place of this one.
    pub fn take(&mut self) -> Self {
        Self { exchange: std::mem::take(&mut self.exchange), name: self.name, ..Self::default() }
    }

    pub fn of_request(&self, requests: &RequestLog) -> Self {
        Self { exchange: requests.begin_next(&self.exchange), name: self.name, ..Self::default() }
    }

    fn call(&self) -> Call<'static> {
        Call { protocol: PROTOCOL, method: "", path: self.name }
    }

    /// Records the answer: its code and the bytes of its message.
    fn finish(&mut self, code: tonic::Code, bytes: u64, failure: Option<(Code, &str)>) {
        let is_good = code == tonic::Code::Ok;
        let answer = Answer { status: number(code), bytes, is_good, failure };
        let call = self.call();
        self.exchange.finish(|| call, &answer);
    }

    pub fn refused(&mut self, status: Status) -> Status {
        self.finish(status.code(), 0, Some((code_of(status.code()), status.message())));
        status
    }

    /// Records that the client was refused for lack of proof or permission. The log line names its address.
    pub fn not_admitted(&mut self, error: AccessError, peer: Peer) -> Status {
        if let Some(identity) = error.identity() {
            self.exchange.set_identity(identity);
        }
        let error = Error::from(error);
        let status = status_of(&error);
        let text = format!("{} (client {peer})", error.message());
        self.exchange.unmark_routine();
        self.finish(status.code(), 0, Some((error.code(), &text)));
        status
    }

    /// Returns the response to the call and records it. `size` returns the bytes of its content.
    pub fn response_of<B: Default>(
        &mut self,
        answered: Result<Response<B>, Status>,
        size: impl FnOnce(&B) -> u64,
    ) -> Response<B> {
        match answered {
            Ok(response) => {
                self.answered(&response, size(response.body()));
                response
            }
            Err(status) => self.refused(status).into_http(),
        }
    }

    /// Records a response of `bytes` bytes, whose head may have an error status.
    fn answered<B>(&mut self, response: &Response<B>, bytes: u64) {
        if self.exchange.is_told() {
            return;
        }
        match Status::from_header_map(response.headers()) {
            Some(status) if status.code() != tonic::Code::Ok => drop(self.refused(status)),
            _ => self.succeeded(bytes),
        }
    }

    pub fn succeeded(&mut self, bytes: u64) {
        self.finish(tonic::Code::Ok, bytes, None);
    }

    /// Begins the record of a request of `bytes` bytes about `subject`.
    pub fn begins(&mut self, subject: Subject, bytes: usize) {
        self.exchange.record_received(bytes);
        self.exchange.set_subject(subject);
    }

    /// Records one of its responses; others may follow.
    pub fn record_response(&mut self, result: &Option<Result<InferResponse>>) {
        match result {
            Some(Ok(response)) => self.exchange.record_sent(response.byte_size()),
            Some(Err(error)) => {
                let call = self.call();
                self.exchange.report_failure(error, &call);
                self.status = status_of(error).code();
            }
            None => {}
        }
    }

    /// Records the end of a request: after its last response, or with an error without one.
    pub fn ended(&mut self, error: Option<&Error>) {
        let status = error.map_or(self.status, |error| status_of(error).code());
        self.finish(status, 0, error.map(|error| (error.code(), error.message())));
    }

    /// Records the end of a stream. Its requests have their own records.
    pub fn stream_ended(&mut self, status: Option<&Status>) {
        match status {
            Some(status) => drop(self.refused(status.clone())),
            None => {
                self.exchange.mark_routine();
                self.ended(None);
            }
        }
    }
}

/// Returns the client's span.
fn client_span(headers: &HeaderMap) -> Option<TraceContext> {
    let all = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
    TraceContext::from_headers(all(&TRACEPARENT), all(&TRACESTATE))
}

fn number(code: tonic::Code) -> u16 {
    u16::try_from(i32::from(code)).unwrap_or_default()
}

/// Returns the code in the log for a gRPC code.
fn code_of(code: tonic::Code) -> Code {
    match code {
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::InvalidArgument
        | tonic::Code::OutOfRange
        | tonic::Code::FailedPrecondition => Code::InvalidArg,
        tonic::Code::Unavailable | tonic::Code::DeadlineExceeded => Code::Unavailable,
        tonic::Code::ResourceExhausted => Code::Exhausted,
        tonic::Code::Unimplemented
        | tonic::Code::PermissionDenied
        | tonic::Code::Unauthenticated => Code::Unsupported,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::Cancelled | tonic::Code::Aborted => Code::Cancelled,
        tonic::Code::Internal | tonic::Code::DataLoss => Code::Internal,
        tonic::Code::Unknown | tonic::Code::Ok => Code::Unknown,
    }
}

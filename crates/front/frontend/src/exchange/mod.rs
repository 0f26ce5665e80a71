//! Records each request for the operator: in the access log, in the log if it failed, and at the verbose levels.

mod failures;
mod recent_failures;
mod subject;
mod times;

use std::{
    fmt,
    sync::{Arc, LazyLock},
    thread,
    time::{Instant, SystemTime},
};

use galatea_telemetry::access_log::{AccessLog, AccessRecord};
use galatea_trace::{ClientSpan, FrontEndTrace, SendTrace, Tracer};
use galatea_types::{
    CallRecord, Code, Error, Identity, InferRequest, Observers, Protocol, RequestContext,
    TraceContext,
};

use crate::client::Peer;

use self::{
    failures::{FailedRequest, Failures},
    times::Times,
};
pub use self::{
    recent_failures::{FailedCall, RecentFailures, without_middle},
    subject::Subject,
};

/// The log and the traces of requests, used by all front ends.
#[derive(Clone, Debug, Default)]
pub struct RequestLog {
    access: Option<Arc<AccessLog>>,
    tracer: Arc<Tracer>,
}

/// These are per process because the log and the limits on its lines are.
static FAILURES: LazyLock<Failures> = LazyLock::new(Failures::default);
static RECENT: LazyLock<RecentFailures> = LazyLock::new(RecentFailures::default);

/// Returns the last failed requests of this process, without health checks and other routine requests.
pub fn recent_failures() -> &'static RecentFailures {
    &RECENT
}

impl RequestLog {
    /// Returns a request log that also writes to this access log.
    pub fn with_access_log(self, access: Arc<AccessLog>) -> Self {
        Self { access: Some(access), ..self }
    }

    /// Returns a request log whose requests this tracer may trace.
    pub fn with_tracer(self, tracer: Arc<Tracer>) -> Self {
        Self { tracer, ..self }
    }

    /// Returns the tracer.
    pub fn tracer(&self) -> &Arc<Tracer> {
        &self.tracer
    }
}

/// The protocol, method and path of a request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `http` or `grpc`.
    pub protocol: &'static str,
    /// The HTTP method; empty if it could not be read.
    pub method: &'a str,
    /// The path without a query, or the full name of a gRPC call. Empty if it could not be read.
    pub path: &'a str,
}

impl fmt::Display for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { protocol, path: "", .. } => write!(f, "a request that is not {protocol}"),
            Self { method: "", path, .. } => f.write_str(path),
            Self { method, path, .. } => write!(f, "{method} {path}"),
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The HTTP status or the gRPC code.
    pub status: u16,
    /// Bytes of the body or message.
    pub bytes: u64,
    /// Is `true` for the answer that the client hoped for.
    pub is_good: bool,
    /// The reason of a failure that the log should report.
    pub failure: Option<(Code, &'a str)>,
}

/// One request from its head to its answer. It is small, since every request makes and moves one: without an access log
/// it holds only the contents of a failure line.
///
/// An exchange that is dropped without an answer counts as cancelled by its client.
#[derive(Debug, Default)]
pub struct Exchange(Option<OpenExchange>);

#[derive(Debug)]
struct OpenExchange {
    protocol: &'static str,
    peer: Peer,
    identity: Option<Arc<Identity>>,
    subject: Subject,
    /// The span of the request, if the client sent one of its own.
    span: Option<Box<ClientSpan>>,
    /// The request was submitted to its model. From then on the model's side logs faults, with all their causes.
    is_submitted: bool,
    is_routine: bool,
    /// The access log entry, if there is an access log.
    entry: Option<Box<Entry>>,
    /// The trace, if requests are traced.
    trace: Option<Box<FrontEndTrace>>,
}

/// The additional data for the access log.
#[derive(Debug)]
struct Entry {
    log: Arc<AccessLog>,
    time: SystemTime,
    since: Instant,
    /// The method, followed by the path from `path_at` on.
    call: String,
    path_at: usize,
    bytes_in: u64,
    bytes_out: u64,
    times: Arc<Times>,
    /// The observers of the request, once it was submitted to its model.
    observers: Observers,
}

impl RequestLog {
    /// Begins the record of a request. `client` is the span that the client has sent.
    #[inline]
    pub fn begin(&self, peer: Peer, call: &Call<'_>, client: Option<TraceContext>) -> Exchange {
        log::debug!("{} request: {call}", title(call.protocol));
        let span = client.map(|client| Box::new(ClientSpan::below(client)));
        let entry = self.access.as_ref().map(|log| Entry::new(log.clone(), call));
        let mut open = OpenExchange::new(call.protocol, peer, span, entry);
        open.trace = self.begin_trace(&open);
        Exchange(Some(open))
    }

    /// Begins the record of another request of the call that `exchange` records, such as the next one of a stream.
    pub fn begin_next(&self, exchange: &Exchange) -> Exchange {
        let mut next = exchange.of_same_call();
        if let Some(open) = &mut next.0 {
            open.trace = self.begin_trace(open);
        }
        next
    }

    #[inline]
    fn begin_trace(&self, open: &OpenExchange) -> Option<Box<FrontEndTrace>> {
        let protocol = if open.protocol == "grpc" { Protocol::Grpc } else { Protocol::Http };
        self.tracer.begin(protocol, open.span.as_deref())
    }
}

impl OpenExchange {
    fn new(
        protocol: &'static str,
        peer: Peer,
        span: Option<Box<ClientSpan>>,
        entry: Option<Box<Entry>>,
    ) -> Self {
        Self {
            protocol,
            peer,
            identity: None,
            subject: Subject::default(),
            span,
            is_submitted: false,
            is_routine: false,
            entry,
            trace: None,
        }
    }
}

impl Entry {
    fn new(log: Arc<AccessLog>, call: &Call<'_>) -> Box<Self> {
        let Call { method, path, .. } = *call;
        let mut call = String::with_capacity(method.len() + path.len());
        call.push_str(method);
        call.push_str(path);
        Box::new(Self {
            log,
            time: SystemTime::now(),
            since: Instant::now(),
            call,
            path_at: method.len(),
            bytes_in: 0,
            bytes_out: 0,
            times: Arc::default(),
            observers: Observers::default(),
        })
    }

    fn call(&self, protocol: &'static str) -> Call<'_> {
        let (method, path) = self.call.split_at_checked(self.path_at).unwrap_or_default();
        Call { protocol, method, path }
    }
}

impl Exchange {
    fn of_same_call(&self) -> Exchange {
        let Some(open) = &self.0 else { return Exchange(None) };
        let entry = open.entry.as_ref();
        let entry = entry.map(|entry| Entry::new(entry.log.clone(), &entry.call(open.protocol)));
        let span = open.span.as_ref().map(|span| Box::new(ClientSpan::below(span.client.clone())));
        let mut other = OpenExchange::new(open.protocol, open.peer, span, entry);
        other.identity.clone_from(&open.identity);
        Exchange(Some(other))
    }

    /// Sets the subject, which was read elsewhere.
    pub fn set_subject(&mut self, subject: Subject) {
        if let Some(open) = &mut self.0 {
            open.subject = subject;
            open.choose_trace();
        }
    }

    /// Returns the subject if there is an access log. Only the access log reports a requested model that does not
    /// exist.
    pub fn asked(&mut self) -> Option<&mut Subject> {
        let open = self.0.as_mut().filter(|open| open.entry.is_some())?;
        Some(&mut open.subject)
    }

    /// Records the sender, who has proved this identity.
    pub fn set_identity(&mut self, identity: &Arc<Identity>) {
        if let Some(open) = &mut self.0 {
            open.identity = Some(identity.clone());
        }
    }

    /// Records that `bytes` bytes of the body or message have arrived.
    pub fn record_received(&mut self, bytes: usize) {
        let Some(open) = &mut self.0 else { return };
        if let Some(entry) = &mut open.entry {
            entry.bytes_in += bytes as u64;
        }
        if let Some(trace) = &mut open.trace {
            trace.record_received();
        }
    }

    /// Records that `bytes` bytes of the answer were sent, in addition to those given to `finish`.
    pub fn record_sent(&mut self, bytes: usize) {
        if let Some(entry) = self.entry() {
            entry.bytes_out += bytes as u64;
        }
    }

    /// Records that the front end begins to send an answer. Returns the part of the trace that records the end of that, if the
    /// request is traced.
    #[inline]
    pub fn begin_sending(&self) -> Option<SendTrace> {
        self.0.as_ref()?.trace.as_ref()?.begin_sending()
    }

    /// Marks the request as routine, such as a health check or a read of the metrics. The access log has it only if it
    /// fails; the log and the recent failures never report it.
    pub fn mark_routine(&mut self) {
        if let Some(open) = &mut self.0 {
            open.is_routine = true;
        }
    }

    /// Takes that mark back.
    pub fn unmark_routine(&mut self) {
        if let Some(open) = &mut self.0 {
            open.is_routine = false;
        }
    }

    /// Records that the model has answered with a result: a later failure is one of the front end.
    pub fn record_result(&mut self) {
        if let Some(open) = &mut self.0 {
            open.is_submitted = false;
        }
    }

    /// Reports that one response of the request is an error. The request continues.
    pub fn report_failure(&mut self, error: &Error, call: &Call<'_>) {
        if let Some(open) = &self.0 {
            open.trace_failure(error.message());
            open.tell_failure((error.code(), error.message()), call, None);
        }
    }

    /// Returns `true` if the end was reported, here or by the current holder.
    pub fn is_told(&self) -> bool {
        self.0.is_none()
    }

    /// Finishes the record with the answer. `call` is only called if something is reported.
    #[inline]
    pub fn finish<'c>(&mut self, call: impl FnOnce() -> Call<'c>, answer: &Answer<'_>) {
        let Some(open) = self.0.take() else { return };
        if let Some((_, reason)) = answer.failure {
            open.trace_failure(reason);
        }
        if open.entry.is_some() || answer.failure.is_some() || log::log_enabled!(log::Level::Debug)
        {
            open.finish(&call(), answer);
        }
    }

    fn entry(&mut self) -> Option<&mut Entry> {
        self.0.as_mut()?.entry.as_deref_mut()
    }
}

impl CallRecord for Exchange {
    fn record_asked(&mut self, model: &str, version: Option<i64>) {
        if let Some(subject) = self.asked() {
            subject.record_asked(model, version);
        }
    }

    fn record_model(&mut self, model: &Arc<str>, version: i64) {
        if let Some(open) = &mut self.0 {
            open.subject.record_model(model, version);
            open.choose_trace();
        }
    }

    fn record_submitted(&mut self, request: &InferRequest, context: &mut RequestContext) {
        let Some(open) = &mut self.0 else { return };
        open.is_submitted = true;
        open.subject.record_submitted(request, context);
        if let Some(observer) = open.trace.as_ref().and_then(|trace| trace.observer()) {
            context.trace_context = observer.trace_context().map(Box::new);
            context.observers.add(observer);
        }
        if let (None, Some(span)) = (&context.trace_context, &open.span) {
            context.trace_context = Some(Box::new(span.request.clone()));
        }
        if let Some(entry) = &mut open.entry {
            context.timeline.arrived = Some(entry.since);
            context.observers.add(entry.times.clone());
            entry.observers = context.observers.clone();
        }
    }
}

impl OpenExchange {
    /// Decides whether the request is traced, if its model is known.
    fn choose_trace(&mut self) {
        if let (Some(trace), Some(model)) = (&mut self.trace, self.subject.found_model()) {
            trace.set_model(model);
        }
    }

    /// Records in the trace that the answer is an error.
    fn trace_failure(&self, reason: &str) {
        if let Some(trace) = &self.trace {
            trace.record_failure(reason);
        }
    }

    fn finish(&self, call: &Call<'_>, answer: &Answer<'_>) {
        if let Some(failure) = answer.failure {
            self.tell_failure(failure, call, Some(answer.status));
        }
        log::debug!(
            "[request id: {}] {} answer to {call}: {}, {} bytes",
            self.subject.id_or_unknown(),
            title(self.protocol),
            answer.status,
            answer.bytes
        );
        let Some(entry) = &self.entry else { return };
        let sent = Instant::now();
        entry.observers.sent(sent);
        if self.is_routine && answer.is_good {
            return;
        }
        let times = entry.times.queue_and_compute();
        let Call { protocol, method, path } = entry.call(self.protocol);
        entry.log.write(&AccessRecord {
            time: entry.time,
            id: self.subject.id(),
            peer: &self.peer,
            protocol,
            method,
            path,
            model: self.subject.model(),
            version: self.subject.version(),
            status: answer.status,
            bytes_in: entry.bytes_in,
            bytes_out: entry.bytes_out + answer.bytes,
            queue: times.map(|(queue, _)| queue),
            compute: times.map(|(_, compute)| compute),
            total: sent.saturating_duration_since(entry.since),
            identity: self.identity.as_ref().map_or("", |identity| identity.name()),
            trace: self.span.as_ref().map(|span| (&span.client, &span.request)),
        });
    }

    /// Adds the failure to the recent ones and logs it.
    fn tell_failure(&self, failure: (Code, &str), call: &Call<'_>, status: Option<u16>) {
        if self.is_routine {
            return;
        }
        let (code, reason) = failure;
        RECENT.add(FailedCall {
            sequence: 0,
            time: SystemTime::now(),
            protocol: self.protocol,
            call: recent_failures::beginning(&call.to_string(), recent_failures::MAX_CALL).into(),
            model: self.subject.model().into(),
            version: self.subject.version(),
            id: self.subject.id().into(),
            client: recent_failures::client(self.peer, self.identity.as_deref()),
            status,
            code,
            // The reason keeps its end, because that says what to do.
            reason: without_middle(reason, recent_failures::MAX_REASON).into(),
        });
        self.log_failure(code, reason, call);
    }

    /// Skips a fault that the model's side has logged already.
    fn log_failure(&self, code: Code, reason: &str, call: &Call<'_>) {
        if self.is_submitted && matches!(code, Code::Internal | Code::Unknown) {
            return;
        }
        FAILURES.log(&FailedRequest {
            model: self.subject.known_model(),
            version: self.subject.version(),
            id: self.subject.id(),
            call,
            trace: self.span.as_ref().map(|span| &span.request as &dyn fmt::Display),
            code,
            reason,
        });
    }
}

fn title(protocol: &str) -> &str {
    match protocol {
        "http" => "HTTP",
        "grpc" => "gRPC",
        other => other,
    }
}

/// The client disconnected, the server shuts down, or the handler panicked.
impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let (code, reason) = match thread::panicking() {
            true => (Code::Internal, "internal error: the handler of this request panicked"),
            false => (Code::Cancelled, "the client disconnected before the response"),
        };
        let status = match (open.protocol, code) {
            ("grpc", Code::Cancelled) => CANCELLED,
            ("grpc", _) => INTERNAL,
            (_, Code::Cancelled) => CLIENT_CLOSED_REQUEST,
            _ => INTERNAL_SERVER_ERROR,
        };
        let unknown = Call { protocol: open.protocol, method: "", path: "a request" };
        let call = open.entry.as_ref().map_or(unknown, |entry| entry.call(open.protocol));
        let failure = Some((code, reason));
        open.trace_failure(reason);
        open.finish(&call, &Answer { status, bytes: 0, is_good: false, failure });
    }
}

/// gRPC codes.
const CANCELLED: u16 = 1;
const INTERNAL: u16 = 13;
const INTERNAL_SERVER_ERROR: u16 = 500;
/// Not an HTTP status: no client reads it. Other servers log this number too.
const CLIENT_CLOSED_REQUEST: u16 = 499;

#[cfg(test)]
mod tests;

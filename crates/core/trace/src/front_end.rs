//! The part of a trace that a front end records: when it received the request, and when it sent the answer.

use std::{sync::Arc, time::Instant};

use galatea_types::{Observer, Protocol};

use crate::{request_trace::ClientSpan, span::Span, tracer::Tracer};

/// The names of a front end's events.
#[derive(Debug)]
struct Names {
    receive_start: &'static str,
    receive_end: &'static str,
    send_start: &'static str,
    send_end: &'static str,
}

static HTTP: Names = Names {
    receive_start: "HTTP_RECV_START",
    receive_end: "HTTP_RECV_END",
    send_start: "HTTP_SEND_START",
    send_end: "HTTP_SEND_END",
};

static GRPC: Names = Names {
    receive_start: "GRPC_WAITREAD_START",
    receive_end: "GRPC_WAITREAD_END",
    send_start: "GRPC_SEND_START",
    send_end: "GRPC_SEND_END",
};

/// A request as its front end sees it. Whether it is traced is decided once its model is known.
#[derive(Debug)]
pub struct FrontEndTrace {
    tracer: Arc<Tracer>,
    names: &'static Names,
    since: Instant,
    received: Option<Instant>,
    /// The span of the request, if the client has sent its own and spans are exported.
    client: Option<ClientSpan>,
    is_decided: bool,
    span: Option<Arc<Span>>,
}

impl Tracer {
    /// Begins to follow a request that has just arrived, if it may be traced. `client` is its span if the client has one.
    #[inline]
    pub fn begin(
        self: &Arc<Self>,
        protocol: Protocol,
        client: Option<&ClientSpan>,
    ) -> Option<Box<FrontEndTrace>> {
        let may_trace = self.is_on() || (client.is_some() && self.follows_clients());
        may_trace.then(|| Box::new(FrontEndTrace::new(self.clone(), protocol, client)))
    }
}

impl FrontEndTrace {
    fn new(tracer: Arc<Tracer>, protocol: Protocol, client: Option<&ClientSpan>) -> Self {
        let names = match protocol {
            Protocol::Grpc => &GRPC,
            Protocol::Http | Protocol::InProcess => &HTTP,
        };
        let since = tracer.recorder().now();
        let client = client.filter(|_| tracer.exports_spans()).cloned();
        Self { tracer, names, since, received: None, client, is_decided: false, span: None }
    }

    /// Records that the request is received whole.
    pub fn record_received(&mut self) {
        let now = self.tracer.recorder().now();
        self.received = Some(now);
        if let Some(span) = &self.span {
            span.record_all(&[(self.names.receive_end, Some(now))]);
        }
    }

    /// Decides whether the request is traced, now that its model is known. Only the first call decides.
    pub fn set_model(&mut self, model: &str) {
        if std::mem::replace(&mut self.is_decided, true) {
            return;
        }
        self.span = self.tracer.choose(model, self.client.as_ref());
        if let Some(span) = &self.span {
            let Names { receive_start, receive_end, .. } = self.names;
            span.record_all(&[(receive_start, Some(self.since)), (receive_end, self.received)]);
        }
    }

    /// Returns the observer of the request, if it is traced.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.span.clone().map(|span| span as _)
    }

    /// Records that the front end answers with an error.
    pub fn record_failure(&self, reason: &str) {
        if let Some(span) = &self.span {
            span.record_failure(reason);
        }
    }

    /// Records that the front end begins to send an answer, if the request is traced.
    pub fn begin_sending(&self) -> Option<SendTrace> {
        let span = self.span.clone()?;
        span.record(self.names.send_start);
        Some(SendTrace { span, names: self.names })
    }
}

/// An answer that is being sent.
#[derive(Debug)]
pub struct SendTrace {
    span: Arc<Span>,
    names: &'static Names,
}

impl SendTrace {
    /// Records that the answer is sent.
    pub fn finish(self) {
        self.span.record(self.names.send_end);
    }
}

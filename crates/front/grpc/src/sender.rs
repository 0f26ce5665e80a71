//! The sender of a call: its caller, and the metadata that becomes parameters of its requests.

use std::{sync::Arc, time::Instant};

use galatea_frontend::{Action, Caller, HeaderForwarding};
use galatea_types::{ClientShare, Identity, InferRequest, Protocol, Result};
use http::HeaderMap;

#[derive(Clone)]
pub(crate) struct Sender {
    pub caller: Caller,
    deadline: Option<Instant>,
    /// `None`, and without cost, unless the operator has configured forwarding.
    forwarded: Option<Box<Forwarded>>,
}

#[derive(Clone)]
struct Forwarded {
    rule: HeaderForwarding,
    headers: Arc<HeaderMap>,
}

impl Sender {
    /// Creates the sender of a call with these headers, who waits until `deadline`.
    pub fn new(
        caller: Caller,
        deadline: Option<Instant>,
        headers: &HeaderMap,
        rule: &HeaderForwarding,
    ) -> Self {
        let forwarded = rule.is_active().then(|| {
            let (rule, headers) = (rule.clone(), Arc::new(headers.clone()));
            Box::new(Forwarded { rule, headers })
        });
        Self { caller, deadline, forwarded }
    }
}

impl galatea_types::Sender for Sender {
    const PROTOCOL: Protocol = Protocol::Grpc;

    fn check(&self, model: &str) -> Result<()> {
        Ok(self.caller.check(&Action::Infer(model))?)
    }

    fn identity(&self) -> Option<&Arc<Identity>> {
        self.caller.identity()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn take_share(&mut self, bytes: usize) -> Result<Option<Box<ClientShare>>> {
        Ok(self.caller.begin(bytes)?)
    }

    fn forward_headers(&self, request: &mut InferRequest) -> Result<()> {
        let Some(forwarded) = &self.forwarded else { return Ok(()) };
        let headers =
            forwarded.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        forwarded.rule.forward(headers.filter(|(name, _)| is_metadata(name)), request)
    }
}

/// Returns `true` if a header is the client's own, and not one of gRPC.
fn is_metadata(name: &str) -> bool {
    !matches!(name, "te" | "content-type") && !name.starts_with("grpc-")
}

//! The sender of a call: who it is, and the metadata that its requests take over as parameters.

use std::sync::Arc;

use galatea_frontend::{Action, Caller, HeaderForwarding};
use galatea_types::{ClientShare, Identity, InferRequest, Protocol, Result};
use http::HeaderMap;

#[derive(Clone)]
pub(crate) struct Sender {
    pub caller: Caller,
    /// Nothing, and without any cost, unless the operator has said what is forwarded.
    forwarded: Option<Box<Forwarded>>,
}

#[derive(Clone)]
struct Forwarded {
    rule: HeaderForwarding,
    headers: Arc<HeaderMap>,
}

impl Sender {
    pub fn new(caller: Caller, headers: &HeaderMap, rule: &HeaderForwarding) -> Self {
        let forwarded = rule.is_active().then(|| {
            let (rule, headers) = (rule.clone(), Arc::new(headers.clone()));
            Box::new(Forwarded { rule, headers })
        });
        Self { caller, forwarded }
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

/// Whether a header is the client's, and not one by which gRPC itself works.
fn is_metadata(name: &str) -> bool {
    !matches!(name, "te" | "content-type") && !name.starts_with("grpc-")
}

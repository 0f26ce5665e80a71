//! The metadata of a call that its requests take over as parameters.

use std::sync::Arc;

use galatea_frontend::HeaderForwarding;
use galatea_types::{InferRequest, Result};
use http::HeaderMap;

/// What the requests of one call take over of its metadata. Nothing, and without any cost, unless the operator has said what.
#[derive(Clone, Default)]
pub(crate) struct Forwarded(Option<(HeaderForwarding, Arc<HeaderMap>)>);

impl Forwarded {
    pub fn of(headers: &HeaderMap, rule: &HeaderForwarding) -> Self {
        Self(rule.is_active().then(|| (rule.clone(), Arc::new(headers.clone()))))
    }

    /// Adds it to the parameters of a request.
    pub fn add_to(&self, request: &mut InferRequest) -> Result<()> {
        let Some((rule, headers)) = &self.0 else { return Ok(()) };
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        rule.forward(headers.filter(|(name, _)| is_metadata(name)), request)
    }
}

/// Whether a header is the client's, and not one by which gRPC itself works.
fn is_metadata(name: &str) -> bool {
    !matches!(name, "te" | "content-type") && !name.starts_with("grpc-")
}

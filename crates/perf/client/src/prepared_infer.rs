//! A request encoded for one protocol, and sent many times.

use galatea_types::Result;

use crate::{InferTemplate, Protocol, Target, grpc::GrpcInfer, http::HttpInfer};

/// A request in its wire form. It is made once, and any thread can send it any number of times.
#[derive(Debug)]
pub struct PreparedInfer {
    pub(crate) form: WireForm,
}

#[derive(Debug)]
pub(crate) enum WireForm {
    Http(HttpInfer),
    Grpc(GrpcInfer),
}

impl PreparedInfer {
    /// Encodes the request for servers like `target`, with its protocol, headers and compression.
    ///
    /// # Errors
    /// If the protocol cannot carry it: JSON has no FP16 and BF16 tensors, no numbers that are not finite and no text that is
    /// not UTF-8; or if a header has a line break.
    pub fn new(target: &Target, template: &InferTemplate) -> Result<Self> {
        Self::with_id(target, template, None)
    }

    /// Like [`new`](Self::new), with any text as id. The marks it is sent with must have no id.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_id(target: &Target, template: &InferTemplate, id: Option<&str>) -> Result<Self> {
        let form = match target.protocol {
            Protocol::Http => WireForm::Http(HttpInfer::new(target, template, id)?),
            Protocol::Grpc => WireForm::Grpc(GrpcInfer::new(target, template, id)?),
        };
        Ok(Self { form })
    }
}

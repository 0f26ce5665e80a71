//! A request encoded for one protocol, to be sent many times.

use galatea_types::Result;

use crate::{InferTemplate, Protocol, Target, grpc::GrpcInfer, http::HttpInfer};

/// A request in its wire form, made once and sent any number of times, by any thread.
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
    /// Encodes the request for servers like `target`: its protocol, headers and compression go into it.
    ///
    /// # Errors
    /// What the protocol cannot carry: as JSON FP16 and BF16 tensors, numbers that are not finite and text that is
    /// not UTF-8; headers with line breaks.
    pub fn new(target: &Target, template: &InferTemplate) -> Result<Self> {
        Self::with_id(target, template, None)
    }

    /// Like [`new`](Self::new), with an id that is any text. It is to be sent with marks that have none.
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

use crate::*;
use galatea_types::{Error, Result};
use std::{rc::Rc, sync::Arc};
#[derive(Debug)]
pub(crate) struct GrpcInfer;
impl GrpcInfer {
    pub(crate) fn new(_: &Target, _: &InferTemplate) -> Result<Self> {
        Ok(Self)
    }
}
pub(crate) struct GrpcPool;
impl GrpcPool {
    pub(crate) fn new(_: Rc<Target>, _: Option<Arc<rustls::ClientConfig>>) -> Result<Self> {
        Ok(Self)
    }
    pub(crate) async fn caller(&self) -> Result<GrpcCaller> {
        Err(Error::unsupported("gRPC is being built"))
    }
}
pub(crate) struct GrpcCaller;
impl GrpcCaller {
    pub(crate) async fn infer(&mut self, _: &GrpcInfer, _: InferMark, _: Keep) -> Result<Reply> {
        Err(Error::unsupported("gRPC is being built"))
    }
    pub(crate) async fn stream(self) -> Result<(StreamSender, StreamReceiver)> {
        Err(Error::unsupported("gRPC is being built"))
    }
}
pub(crate) struct GrpcSender;
impl GrpcSender {
    pub(crate) async fn send(&mut self, _: &PreparedInfer, _: InferMark) -> Result<()> {
        Ok(())
    }
    pub(crate) fn finish(self) {}
}
pub(crate) struct GrpcReceiver;
impl GrpcReceiver {
    pub(crate) async fn next(&mut self, _: Keep) -> Option<Result<StreamReply>> {
        None
    }
}
pub(crate) struct GrpcAdmin(#[allow(dead_code)] GrpcCaller);
impl GrpcAdmin {
    pub(crate) fn new(c: GrpcCaller) -> Self {
        Self(c)
    }
    pub(crate) async fn server_metadata(&mut self) -> Result<ServerMetadata> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn model_metadata(&mut self, _: &str, _: &str) -> Result<ModelMetadata> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn model_config(&mut self, _: &str, _: &str) -> Result<ModelConfigFacts> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn statistics(&mut self, _: &str, _: &str) -> Result<Vec<ModelStatistics>> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn set_trace(&mut self, _: &str, _: &[(String, Vec<String>)]) -> Result<()> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn register_system_region(
        &mut self,
        _: &str,
        _: &str,
        _: usize,
    ) -> Result<()> {
        Err(Error::unsupported(""))
    }
    pub(crate) async fn unregister_system_region(&mut self, _: &str) -> Result<()> {
        Err(Error::unsupported(""))
    }
}

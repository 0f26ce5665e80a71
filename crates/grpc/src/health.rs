//! The standard health service.

use std::sync::Arc;

use galatea_engine::Engine;
use galatea_proto::health::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health,
};
use tonic::{Request, Response, Status};

/// Whether the server is live and ready. The service name a client asks for makes no difference, as in Triton.
pub(crate) struct HealthService {
    pub engine: Arc<Engine>,
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let is_ready = self.engine.is_live() && self.engine.is_ready();
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }
}

//! The front ends: started, made to refuse requests, shut down.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use galatea_engine::Engine;
use galatea_frontend::FrontEnd;

use super::socket::Sockets;
use crate::options::{Endpoint, ServeOptions};

/// The front ends that run.
pub struct Services {
    http: Option<FrontEnd>,
    grpc: Option<FrontEnd>,
    metrics: Option<FrontEnd>,
}

impl Services {
    /// Starts them in Triton's order, gRPC first: a script that waits for the last line finds all of them.
    pub fn start(sockets: Sockets, engine: &Arc<Engine>, options: &ServeOptions) -> Result<Self> {
        let mut services = Self { http: None, grpc: None, metrics: None };
        if let (Some(socket), Some(endpoint)) = (sockets.grpc, &options.grpc) {
            let server = galatea_grpc::serve(socket.listen()?, engine, &options.grpc_options)
                .context("failed to start GRPC service")?;
            log::info!("Started GRPCInferenceService at {}", place(endpoint, server.local_addr()));
            services.grpc = Some(server);
        }
        if let (Some(socket), Some(endpoint)) = (sockets.http, &options.http) {
            let server = galatea_http::serve(socket.listen()?, engine, &options.http_options)
                .context("failed to start HTTP service")?;
            log::info!("Started HTTPService at {}", place(endpoint, server.local_addr()));
            services.http = Some(server);
        }
        if let (Some(socket), Some(endpoint)) = (sockets.metrics, &options.metrics) {
            let server =
                galatea_http::serve_metrics(socket.listen()?, engine, &options.http_options)
                    .context("failed to start Metrics service")?;
            log::info!("Started Metrics Service at {}", place(endpoint, server.local_addr()));
            services.metrics = Some(server);
        }
        Ok(services)
    }

    /// From now on inference and management are answered with "unavailable"; requests in flight go on. The
    /// metrics stay, so that draining can be watched.
    pub fn refuse_new_requests(&self) {
        if let Some(grpc) = &self.grpc {
            grpc.refuse_new_requests();
        }
        if let Some(http) = &self.http {
            http.refuse_new_requests();
        }
    }

    /// Sends the responses that are left, until `deadline`. Returns how many requests were cut off.
    pub fn shut_down(self, deadline: Instant) -> usize {
        let left = || deadline.saturating_duration_since(Instant::now());
        let grpc = self.grpc.map_or(0, |grpc| grpc.shut_down(left()));
        let http = self.http.map_or(0, |http| http.shut_down(left()));
        if let Some(metrics) = self.metrics {
            metrics.shut_down(Duration::ZERO);
        }
        grpc + http
    }
}

/// The address as it was given, with the port that was bound.
fn place(endpoint: &Endpoint, at: Option<SocketAddr>) -> String {
    format!("{}:{}", endpoint.address, at.map_or(endpoint.port, |at| at.port()))
}

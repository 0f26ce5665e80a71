//! The whole front end on a real socket, asked by a real client.
#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod access;
#[allow(clippy::too_many_lines, reason = "tables of requests")]
mod bad_requests;
/// Clients of the services, as `cargo xtask codegen` makes them.
#[allow(
    clippy::all,
    rust_2018_idioms,
    dead_code,
    reason = "generated, and not all of it is needed"
)]
mod clients {
    pub mod inference {
        include!("generated/inference.rs");
    }

    pub mod health {
        include!("generated/grpc.health.v1.rs");
    }

    pub mod load_report_service {
        include!("generated/xds.service.orca.v3.rs");
    }

    pub use self::{
        health::health_client::HealthClient,
        inference::grpc_inference_service_client::GrpcInferenceServiceClient,
        load_report_service::open_rca_service_client::OpenRcaServiceClient,
    };
}
mod compression;
mod decoupled;
mod floods;
mod frames;
mod infer;
mod life;
mod limits;
mod load_reports;
mod raw_http2;
mod streams;
mod support;

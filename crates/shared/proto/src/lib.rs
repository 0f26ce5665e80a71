//! Protobuf messages of the KServe v2 protocol, the model configuration, health and load reports.
//!
//! The `.proto` files under `proto/` are ours, written from the public contract; `cargo xtask codegen`
//! turns them into `src/generated/`, and a test fails when the two differ. No logic lives here.
#![warn(missing_docs)]
#![allow(clippy::all, clippy::too_many_lines, rust_2018_idioms)]

/// KServe v2 messages and the model configuration (package `inference`).
#[allow(missing_docs, reason = "generated: the fields are those of the public contract")]
pub mod inference {
    include!("generated/inference.rs");
}

/// Messages of the standard health service (package `grpc.health.v1`).
#[allow(missing_docs, reason = "generated: the fields are those of the public contract")]
pub mod health {
    include!("generated/grpc.health.v1.rs");
}

/// Load reports (package `xds.data.orca.v3`).
#[allow(missing_docs, reason = "generated: the fields are those of the public contract")]
pub mod load_report {
    include!("generated/xds.data.orca.v3.rs");
}

/// Messages of the service that streams load reports (package `xds.service.orca.v3`).
#[allow(missing_docs, reason = "generated: the fields are those of the public contract")]
pub mod load_report_service {
    include!("generated/xds.service.orca.v3.rs");
}

/// The compiled descriptors of every message above, as an encoded `FileDescriptorSet`.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");

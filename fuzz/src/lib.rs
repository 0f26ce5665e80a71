//! What is fuzzed: one target per parser of bytes that come from elsewhere, one of made-up requests per protocol, and
//! one of whole sequences of requests and loads against an engine.
//!
//! A target is a function of bytes that panics when something is wrong. `cargo xtask fuzz` runs it under libFuzzer
//! (the crate in `libfuzzer`); the test `seeds` runs it on the files in `seeds/TARGET`, on any toolchain.

#![warn(missing_docs)]
// What fails here is a finding.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod access;
mod archives;
mod certificates;
mod config;
mod edits;
mod engine;
mod grpc;
mod http;
mod hub;
mod load_tool;
mod memory;
mod response_cache;
mod server;
mod session;
mod tls;
mod tls_files;
mod trace_context;
mod values;
mod worker;

/// Something to fuzz.
pub struct Target {
    /// Names its seeds too.
    pub name: &'static str,
    /// Panics when it finds something.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "access_credential", run: access::credential },
    Target { name: "access_key_set", run: access::key_set },
    Target { name: "access_policy", run: access::policy },
    Target { name: "archive_elf", run: archives::elf },
    Target { name: "archive_pt2", run: archives::pt2 },
    Target { name: "archive_tar", run: archives::tar },
    Target { name: "archive_triton_library", run: archives::triton_library },
    Target { name: "call_spec", run: archives::call_spec },
    Target { name: "certificate_name", run: certificates::name },
    Target { name: "client_grpc_response", run: load_tool::grpc_response },
    Target { name: "client_http_response", run: load_tool::http_response },
    Target { name: "config_json", run: config::json },
    Target { name: "config_text", run: config::text },
    Target { name: "engine_sequence", run: engine::sequence::run },
    Target { name: "grpc_connection", run: grpc::connection::run },
    Target { name: "grpc_message", run: grpc::message::run },
    Target { name: "grpc_request", run: grpc::request::run },
    Target { name: "http_binary", run: http::body::binary },
    Target { name: "http_codec", run: http::codec::run },
    Target { name: "http_connection", run: http::connection::run },
    Target { name: "http_generate", run: http::body::generate },
    Target { name: "http_head", run: http::connection::head },
    Target { name: "http_json", run: http::body::json },
    Target { name: "http_repository", run: http::body::repository },
    Target { name: "http_request", run: http::request::run },
    Target { name: "hub_answer", run: hub::answer },
    Target { name: "load_data", run: load_tool::data },
    Target { name: "load_overrides", run: engine::overrides::run },
    Target { name: "metrics_text", run: load_tool::metrics },
    Target { name: "onnx_header", run: archives::onnx_header },
    Target { name: "openvino_header", run: archives::openvino_header },
    Target { name: "perf_summary", run: load_tool::summary },
    Target { name: "redis_reply", run: response_cache::redis_reply },
    Target { name: "response_cache_entry", run: response_cache::entry },
    Target { name: "saved_model", run: archives::saved_model },
    Target { name: "sequence_states", run: engine::states::run },
    Target { name: "tls_handshake", run: tls::handshake },
    Target { name: "tls_records", run: tls::records },
    Target { name: "trace_context", run: trace_context::run },
    Target { name: "trace_file", run: load_tool::trace_file },
    Target { name: "worker_exchange", run: worker::exchange },
    Target { name: "worker_message", run: worker::message },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

//! The gRPC front end: `inference.GRPCInferenceService` and `grpc.health.v1.Health` on one port.
//!
//! `galatea-frontend` provides connections and threads; models run on the instance threads of the engine.
//!
//! **Invariants.** Nothing here parses tensors (that is `galatea-protocol`) or knows a backend. No call
//! blocks a front end thread: loading and unloading run on blocking threads. A panic in a call ends that
//! call with INTERNAL and nothing else.

#![warn(missing_docs)]

mod answer;
mod call;
mod call_form;
mod call_record;
mod compression;
mod connection;
mod connection_age;
mod content;
mod deadline;
mod dispatch;
mod frames;
mod graceful_close;
mod guarded_stream;
mod health;
mod infer;
mod keep_alive;
mod load_report;
mod log_settings;
mod message;
mod messages;
mod open_calls;
mod options;
mod panic_text;
mod piece;
mod pings;
mod receive_timeout;
mod reflection;
mod reply;
mod repository;
mod response_body;
mod response_writer;
mod route;
mod sender;
mod server;
mod service;
mod shared_memory;
mod shared_stream;
mod socket_authority;
mod state;
mod status;
mod stream;
mod timer;
mod trace_settings;
mod unary_infer;
mod unread_bytes;
mod wakeups;

pub use options::{GrpcOptions, ResponseCompression};
pub use pings::PingRules;
pub use server::serve;

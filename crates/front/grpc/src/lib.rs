//! The gRPC front end: `inference.GRPCInferenceService` and `grpc.health.v1.Health` on one port.
//!
//! `galatea-frontend` provides connections and threads; models run on the instance threads of the engine.
//!
//! **Invariants.** Nothing here parses tensors (that is `galatea-protocol`) or knows a backend. No call
//! blocks a front end thread: loading and unloading run on blocking threads. A panic in a call ends that
//! call with INTERNAL and nothing else.

#![warn(missing_docs)]

mod age;
mod answering;
mod call;
mod call_form;
mod compression;
mod connection;
mod content;
mod deadline;
mod dispatch;
mod farewell;
mod frames;
mod guard;
mod health;
mod infer;
mod joined;
mod keep_alive;
mod log_settings;
mod message;
mod messages;
mod open_calls;
mod options;
mod outgoing;
mod panicked;
mod patience;
mod piece;
mod pings;
mod reflection;
mod reply;
mod repository;
mod route;
mod sender;
mod sending;
mod server;
mod service;
mod shared_memory;
mod state;
mod status;
mod stream;
mod timer;
mod told;
mod unary_infer;
mod unread;
mod wakeups;

pub use options::{GrpcOptions, ResponseCompression};
pub use pings::PingRules;
pub use server::serve;

//! The gRPC front end: `inference.GRPCInferenceService` and `grpc.health.v1.Health` on one port.
//!
//! A few OS threads each run a single-threaded runtime and own the connections handed to them, the one
//! with the fewest first. A connection and all its calls stay on one thread, so a call costs no hand-over
//! inside the front end; the model's work happens on the instance threads of the engine.
//!
//! **Invariants.** Nothing here parses tensors (that is `galatea-protocol`) or knows a backend. No call
//! blocks a front end thread: loading and unloading run on blocking threads. A panic in a call ends that
//! call with INTERNAL and nothing else.

mod connection;
mod deadline;
mod dispatch;
mod health;
mod infer;
mod metadata;
mod options;
mod reply;
mod repository;
mod server;
mod service;
mod statistics;
mod status;
mod stream;
mod unary;

pub use options::GrpcOptions;
pub use server::serve;

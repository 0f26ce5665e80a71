//! gRPC: messages, whole requests, connections.

pub mod connection;
mod frames;
pub mod message;
pub mod request;

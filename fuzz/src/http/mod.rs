//! HTTP: bodies, whole requests, connections.

pub mod body;
pub mod codec;
pub mod connection;
pub mod request;

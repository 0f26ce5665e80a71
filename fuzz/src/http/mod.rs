//! HTTP: bodies, whole requests, connections.

pub mod body;
pub mod connection;
pub mod request;

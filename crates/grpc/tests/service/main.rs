//! The whole front end on a real socket, asked by a real client.

mod bad_requests;
mod infer;
mod life;
mod streams;
mod support;

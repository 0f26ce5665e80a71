//! The whole front end on a real socket, asked by a real client.
#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod access;
#[allow(clippy::too_many_lines, reason = "tables of requests")]
mod bad_requests;
mod compression;
mod decoupled;
mod floods;
mod frames;
mod infer;
mod life;
mod limits;
mod raw_http2;
mod streams;
mod support;

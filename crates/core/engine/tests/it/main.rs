//! Tests of the crate from outside, as one program: it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, helpers included"
)]

mod added_repositories;
mod agents;
mod call;
mod config_fields;
mod control;
mod ensembles;
mod failed_loads;
mod fixture;
mod gpus;
mod instances;
mod lifecycle;
mod namespaces;
mod numbers;
mod output_allocator;
mod paths;
mod poll;
mod refusals;
mod repositories;

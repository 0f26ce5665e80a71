//! The handlers. Each answers the requests of a few routes.

mod codec;
pub(crate) mod console;
pub(crate) mod generate;
pub(crate) mod infer;
mod lines;
mod load_report;
pub(crate) mod management;
pub(crate) mod metrics;
pub(crate) mod repository;
pub(crate) mod shared_memory;

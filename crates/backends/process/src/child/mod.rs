//! The program of a child: it constructs a backend, loads one instance of a model, and executes requests.

mod batch;
mod limits;
mod log_events;
mod serve;
mod subject;

pub use serve::{ServeError, serve};

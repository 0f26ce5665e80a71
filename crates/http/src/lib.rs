//! The HTTP front end (KServe v2 with Triton's extensions) and the metrics endpoint.
//!
//! Connections and threads are those of `galatea-frontend`; the model's work happens on the instance threads of the
//! engine.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! # let engine = galatea_engine::Engine::new(Default::default(), Default::default());
//! let listener = std::net::TcpListener::bind("127.0.0.1:8000")?;
//! println!("listening on {}", listener.local_addr()?);
//! let server = galatea_http::serve(listener, &engine, &galatea_http::HttpOptions::default())?;
//! let cut_off = server.shut_down(std::time::Duration::from_secs(30));
//! # Ok(())
//! # }
//! ```
//!
//! **Invariants.** Nothing here parses JSON or tensors (that is `galatea-protocol`) or knows a backend. No
//! request blocks a front end thread: what blocks runs on the control threads of the engine, and what takes long on those of `HeavyWork`. A panic in a request ends that
//! request with 500 and nothing else.

#![warn(missing_docs)]

mod admission;
mod body;
mod body_error;
mod body_limits;
mod cloud;
mod collector;
mod compression;
mod connection;
mod console;
mod counted;
mod event_body;
mod generate;
mod infer;
mod lines;
mod load_report;
mod log_settings;
mod management;
mod metrics;
mod options;
mod readiness;
mod received;
mod repository;
mod request_body;
mod response;
mod response_stream;
mod responses;
mod route;
mod same_site;
#[cfg(test)]
mod sent_head;
mod server;
mod service;
mod state;
mod streamed;
mod work;

pub use cloud::{CloudFrontEnd, CloudInference, PathPattern, PathPatternError, SageMakerModels};
pub use options::HttpOptions;
pub use server::{serve, serve_cloud, serve_metrics};

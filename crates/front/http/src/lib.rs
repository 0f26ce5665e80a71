//! The HTTP front end (KServe v2 with Triton's extensions) and the metrics endpoint.
//!
//! `galatea-frontend` provides connections and threads; models run on the instance threads of the engine.
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
//! **Invariants.** Nothing here parses JSON or tensors (that is `galatea-protocol`) or knows a backend. No request
//! blocks a front end thread: blocking work runs on the control threads of the engine, and long work on those of
//! `HeavyWork`. A panic in a request ends that request with 500 and nothing else.

//! **Layers**, each of which uses only those below it: `server` listens; `connection` reads one request after another;
//! `service` routes a request to one of the `handlers`, or to those of cloud platforms (`cloud`); `request` and
//! `response` have the parts of each; `state` is shared by all requests; `io` is the stream and the bytes of bodies.

#![warn(missing_docs)]

mod cloud;
mod compression;
mod connection;
mod handlers;
mod io;
mod options;
mod request;
mod response;
mod server;
mod service;
mod state;

pub use cloud::{CloudFrontEnd, CloudInference, PathPattern, SageMakerModels};
pub use galatea_console::SharedAbout;
pub use options::{HttpOptions, MetricsScope};
pub use server::{serve, serve_cloud, serve_metrics};

//! The traces of the front ends' requests, and their figure.

use std::sync::Arc;

use anyhow::{Result, bail};
use galatea_telemetry::{families, metrics::FigureSource};
use galatea_trace::{TraceMode, Tracer};

use crate::options::ServeOptions;

/// Makes the tracer, and gives it to all front ends.
pub fn open(options: &mut ServeOptions) -> Result<Arc<Tracer>> {
    if options.trace.mode == TraceMode::OpenTelemetry {
        bail!(
            "trace mode 'opentelemetry' is not supported; use --trace-config mode=triton, or leave the mode out"
        );
    }
    let tracer = Arc::new(Tracer::new(options.trace.clone()));
    for requests in [&mut options.http_options.requests, &mut options.grpc_options.requests] {
        *requests = std::mem::take(requests).with_tracer(tracer.clone());
    }
    Ok(tracer)
}

/// Writes the last traces when it is dropped, at the end of the server.
pub struct LastTraces(pub Arc<Tracer>);

impl Drop for LastTraces {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns the figure of lost traces.
pub fn figures(tracer: Arc<Tracer>) -> FigureSource {
    Box::new(move |figures| figures.set(&families::TRACES_LOST, tracer.lost()))
}

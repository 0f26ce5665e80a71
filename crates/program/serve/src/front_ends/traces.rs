//! The traces of the front ends' requests, and their figure.

use std::sync::Arc;

use anyhow::Result;
use galatea_otlp::SpanExporter;
use galatea_telemetry::{families, metrics::FigureSource};
use galatea_trace::{TraceMode, Tracer};
use galatea_types::Clock;

use crate::options::ServeOptions;

/// Makes the tracer, and gives it to all front ends.
pub fn open(options: &mut ServeOptions) -> Result<Arc<Tracer>> {
    let tracer = Arc::new(tracer(options)?);
    for requests in [&mut options.http_options.requests, &mut options.grpc_options.requests] {
        *requests = std::mem::take(requests).with_tracer(tracer.clone());
    }
    Ok(tracer)
}

fn tracer(options: &ServeOptions) -> Result<Tracer> {
    let (mut trace, environment) = (options.trace.clone(), &options.runtimes.environment);
    // Only the console shows them.
    trace.keeps_recent = options.http.is_some() && options.http_options.has_console;
    Ok(match trace.mode {
        TraceMode::Triton => Tracer::new(trace),
        TraceMode::OpenTelemetry => {
            let settings = options.trace_export.check(environment)?;
            let defaults = settings.defaults().iter();
            trace.others.extend(defaults.map(|one| (one.name.clone(), one.value.clone())));
            let exporter = SpanExporter::new(settings, environment)?;
            Tracer::with_sink(trace, Arc::new(exporter), Clock::system())
        }
    })
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

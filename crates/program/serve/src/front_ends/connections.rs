//! The shared parts of the front ends: limits of connections and clients, threads for long requests, and their figures.

use std::sync::Arc;

use galatea_frontend::{ClientLimits, ConnectionLimits, ConnectionSettings, HeavyWork};
use galatea_telemetry::{families, metrics::FigureSource};
use galatea_types::MemoryBudget;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::options::ServeOptions;

/// Gives all front ends the same limits and threads, and all users of memory for clients one budget.
pub fn share(options: &mut ServeOptions, memory: Arc<MemoryBudget>) {
    let settings = settings(options, raise_descriptor_limit());
    let limits = ConnectionLimits::new(settings, memory.clone());
    let heavy_work = Arc::new(HeavyWork::default());
    let (http, grpc) = (&mut options.http_options, &mut options.grpc_options);
    (http.memory, grpc.memory) = (memory.clone(), memory.clone());
    options.engine.memory = memory;
    (http.limits, grpc.limits) = (limits.clone(), limits);
    (http.heavy_work, grpc.heavy_work) = (heavy_work.clone(), heavy_work);
    let client_limits = ClientLimits::new(options.client_limits);
    (http.client_limits, grpc.client_limits) = (client_limits.clone(), client_limits);
}

/// Returns the figures of the parts that [`share`] made.
pub fn figures(options: &ServeOptions) -> FigureSource {
    let (limits, heavy_work) =
        (options.http_options.limits.clone(), options.http_options.heavy_work.clone());
    let client_limits = options.http_options.client_limits.clone();
    Box::new(move |figures| {
        let counts = limits.counts();
        figures.set(&families::CONNECTIONS, limits.open());
        figures.set(&families::CONNECTIONS_LIMIT, limits.settings().max_connections);
        figures.set(&families::CONNECTIONS_REFUSED, counts.refused);
        for (reason, count) in counts.closed {
            figures.set_labelled(&families::CONNECTIONS_CLOSED, reason, count);
        }
        let (waiting, refused) = heavy_work.counts();
        figures.set(&families::LONG_REQUESTS_WAITING, waiting);
        figures.set_labelled(&families::REQUESTS_REFUSED, "long_requests", refused);
        for (reason, count) in client_limits.refused() {
            figures.set_labelled(&families::REQUESTS_REFUSED, reason, count);
        }
    })
}

fn settings(options: &ServeOptions, descriptors: usize) -> ConnectionSettings {
    let found = ConnectionSettings::for_descriptors(descriptors);
    let max_connections = options.max_connections.unwrap_or(found.max_connections);
    if max_connections > found.max_connections {
        log::warn!(
            "--max-connections={max_connections} may leave no file descriptors for models: the process may have \
             {descriptors} open"
        );
    }
    ConnectionSettings {
        max_connections,
        reserved_connections: found.reserved_connections.min(max_connections / 4),
        ..options.connections
    }
}

/// Raises the limit of open descriptors as far as possible, and returns it.
fn raise_descriptor_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = match raised {
        Ok(()) => maximum,
        Err(error) => {
            log::warn!("failed to raise the limit of open file descriptors: {error}");
            current
        }
    };
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

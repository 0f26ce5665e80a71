//! The option table, in the order of Triton's help.

mod endpoints;
mod limits;
mod machine;
mod models;
mod python;
mod row;
mod security;
mod server;

use galatea_command_line::Group;

use self::row::Row;
use super::serve_flags::ServeFlags;

pub(super) const GROUPS: &[Group<ServeFlags>] = &[
    group("", server::GENERAL),
    group("Server", server::SERVER),
    group("Logging", server::LOGGING),
    group("Model Repository", models::REPOSITORY),
    group("HTTP", endpoints::HTTP),
    group("GRPC", endpoints::GRPC),
    group("Sagemaker", endpoints::SAGEMAKER),
    group("Vertex", endpoints::VERTEX),
    group("Metrics", server::METRICS),
    group("Tracing", server::TRACING),
    group("Backend", models::BACKEND),
    group("Repository Agent", models::AGENT),
    group("Response Cache", models::CACHE),
    group("Rate Limiter", models::RATE_LIMITER),
    group("Memory/Device Management", machine::MEMORY),
    Group { title: "Shutdown (Galatea's own)", rows: server::SHUTDOWN, is_own: true },
    Group { title: "Access log (Galatea's own)", rows: server::ACCESS_LOG, is_own: true },
    Group { title: "Console (Galatea's own)", rows: server::CONSOLE, is_own: true },
    Group { title: "Security (Galatea's own)", rows: security::SECURITY, is_own: true },
    Group { title: "Limits (Galatea's own)", rows: limits::LIMITS, is_own: true },
    Group { title: "Python models (Galatea's own)", rows: python::PYTHON, is_own: true },
    Group { title: "GPUs (Galatea's own)", rows: machine::GPUS, is_own: true },
    Group { title: "Runtimes (Galatea's own)", rows: machine::RUNTIMES, is_own: true },
    group("DEPRECATED", server::DEPRECATED),
];

const fn group(title: &'static str, rows: &'static [Row]) -> Group<ServeFlags> {
    Group { title, rows, is_own: false }
}

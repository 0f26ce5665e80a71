//! The table itself. The order is the one of Triton's help.

mod endpoints;
mod machine;
mod models;
mod server;

use super::{Flag, Group, Kind};

pub fn groups() -> &'static [Group] {
    GROUPS
}

const GROUPS: &[Group] = &[
    Group { title: "", flags: server::GENERAL },
    Group { title: "Server", flags: server::SERVER },
    Group { title: "Logging", flags: server::LOGGING },
    Group { title: "Model Repository", flags: models::REPOSITORY },
    Group { title: "HTTP", flags: endpoints::HTTP },
    Group { title: "GRPC", flags: endpoints::GRPC },
    Group { title: "Sagemaker", flags: endpoints::SAGEMAKER },
    Group { title: "Vertex", flags: endpoints::VERTEX },
    Group { title: "Metrics", flags: server::METRICS },
    Group { title: "Tracing", flags: server::TRACING },
    Group { title: "Backend", flags: models::BACKEND },
    Group { title: "Repository Agent", flags: models::AGENT },
    Group { title: "Response Cache", flags: models::CACHE },
    Group { title: "Rate Limiter", flags: models::RATE_LIMITER },
    Group { title: "Memory/Device Management", flags: machine::MEMORY },
    Group { title: "Runtimes (Galatea's own)", flags: machine::RUNTIMES },
    Group { title: "DEPRECATED", flags: server::DEPRECATED },
];

const fn at_least(min: i64) -> Kind {
    Kind::Integer { min, max: i32::MAX as i64 }
}

const PORT: Kind = Kind::Integer { min: 0, max: u16::MAX as i64 };

/// Said of every flag that tunes threads we do not have.
const OWN_THREADS: &str = "threads are started as the load and the machine's cores ask for";

use crate::flags::{FlagError, Parsed};

/// Where one of the services listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As the port collision text names it.
    pub service: &'static str,
    pub address: String,
    /// 0: a free one.
    pub port: u16,
    pub reuses_port: bool,
}

type Endpoints = (Option<Endpoint>, Option<Endpoint>, Option<Endpoint>);

/// HTTP, gRPC and metrics.
pub(super) fn from_flags(flags: &Parsed) -> Result<Endpoints, FlagError> {
    let http_address = flags.text("http-address");
    let metrics_address = flags.last("metrics-address").unwrap_or(http_address);
    let http = flags.bool("allow-http").then(|| Endpoint {
        service: "HTTP",
        address: http_address.to_owned(),
        port: flags.integer("http-port"),
        reuses_port: flags.bool("reuse-http-port"),
    });
    let grpc = flags.bool("allow-grpc").then(|| Endpoint {
        service: "GRPC",
        address: flags.text("grpc-address").to_owned(),
        port: flags.integer("grpc-port"),
        reuses_port: flags.bool("reuse-grpc-port"),
    });
    let metrics = flags.bool("allow-metrics").then(|| Endpoint {
        service: "metrics",
        address: metrics_address.to_owned(),
        port: flags.integer("metrics-port"),
        reuses_port: false,
    });
    let all: Vec<&Endpoint> = [&http, &grpc, &metrics].into_iter().flatten().collect();
    check_collisions(&all)?;
    Ok((http, grpc, metrics))
}

fn check_collisions(endpoints: &[&Endpoint]) -> Result<(), FlagError> {
    for (index, one) in endpoints.iter().enumerate() {
        if let Some(other) = endpoints.iter().skip(index + 1).find(|other| one.collides_with(other))
        {
            return Err(FlagError::Rule(format!(
                "The server cannot listen to {} requests and {} requests at the same address and port {}:{}",
                one.service, other.service, one.address, one.port
            )));
        }
    }
    Ok(())
}

impl Endpoint {
    fn collides_with(&self, other: &Endpoint) -> bool {
        let is_any = |address: &str| matches!(address, "0.0.0.0" | "::" | "[::]");
        self.port != 0
            && self.port == other.port
            && (self.address == other.address || is_any(&self.address) || is_any(&other.address))
    }
}

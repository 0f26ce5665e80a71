//! The endpoints of the services.

use galatea_command_line::{BadValue, ValueError};
use galatea_serve::Endpoint;

use crate::flags::{EndpointFlags, FlagError, ServeFlags};

/// Returns HTTP, gRPC and metrics, which must not have the address of one of the `others`; `None`: not served.
pub(super) fn endpoints(
    flags: &ServeFlags,
    others: &[&Endpoint],
) -> Result<[Option<Endpoint>; 3], FlagError> {
    let metrics_address = flags.metrics_address.as_ref().unwrap_or(&flags.http.address);
    let endpoints = [
        endpoint("HTTP", &flags.http, &flags.http.address)?,
        endpoint("GRPC", &flags.grpc, &flags.grpc.address)?,
        endpoint("metrics", &flags.metrics, metrics_address)?,
    ];
    let all: Vec<&Endpoint> = endpoints.iter().flatten().chain(others.iter().copied()).collect();
    if let Some((first, last)) = flags.sagemaker_safe_ports.filter(|_| flags.allows_sagemaker) {
        check_range(&all, first, last)?;
    }
    check_collisions(&all)?;
    Ok(endpoints)
}

fn endpoint(
    service: &'static str,
    flags: &EndpointFlags,
    address: &str,
) -> Result<Option<Endpoint>, FlagError> {
    if !flags.is_allowed.unwrap_or(true) {
        return Ok(None);
    }
    let port = port(service, flags.port)?;
    let (address, reuses_port) = (address.to_owned(), flags.reuses_port);
    Ok(Some(Endpoint { service, address, port, reuses_port }))
}

fn port(service: &str, given: i64) -> Result<u16, FlagError> {
    u16::try_from(given).map_err(|_| {
        let option = Endpoint::port_option(service);
        let got = given.to_string();
        let reason = ValueError::OutOfBounds { got, min: 0, max: u16::MAX.into() };
        BadValue { option, reason }.into()
    })
}

fn check_collisions(endpoints: &[&Endpoint]) -> Result<(), FlagError> {
    for (index, one) in endpoints.iter().enumerate() {
        if let Some(other) = endpoints.iter().skip(index + 1).find(|other| collides(one, other)) {
            return Err(FlagError::Rule(format!(
                "The server cannot listen to {} requests and {} requests at the same address and port {}:{}; \
                 give one of them another port",
                one.service, other.service, one.address, one.port
            )));
        }
    }
    Ok(())
}

/// Checks the range of ports that a platform allows besides its own.
fn check_range(endpoints: &[&Endpoint], first: i64, last: i64) -> Result<(), FlagError> {
    let is_outside = |one: &&&Endpoint| {
        one.service != "SageMaker" && !(first..=last).contains(&i64::from(one.port))
    };
    match endpoints.iter().find(is_outside) {
        None => Ok(()),
        Some(Endpoint { service, port, .. }) => Err(FlagError::Rule(format!(
            "The server cannot listen to {service} requests at port {port}, allowed port range is [{first}, {last}]"
        ))),
    }
}

fn collides(one: &Endpoint, other: &Endpoint) -> bool {
    let is_any = |address: &str| matches!(address, "0.0.0.0" | "::" | "[::]");
    one.port != 0
        && one.port == other.port
        && (one.address == other.address || is_any(&one.address) || is_any(&other.address))
}

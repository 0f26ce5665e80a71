//! A warning at start about the services that anybody can use, if the server has no authentication.
//!
//! As a drop-in for Triton the server listens at every address without authentication. It cannot refuse that, so it warns at
//! once.

use std::net::IpAddr;

use galatea_engine::ControlMode;
use galatea_frontend::{ApiCategory, TlsFiles};

use crate::options::{Endpoint, Place, PortPlace, ServeOptions, TlsOptions};

/// Returns the warning if anybody outside of this machine may use the server.
pub fn warning(options: &ServeOptions) -> Option<String> {
    if options.auth_policy.is_some() {
        return None;
    }
    let reachable = reachable(options);
    if reachable.is_empty() {
        return None;
    }
    let open = open(options, &reachable);
    (!open.is_empty()).then(|| {
        format!(
            "everyone who can reach {} may use this server without credentials. They may use: {}. Require \
             credentials with --auth-policy, or let only this machine in with {}--http-address=127.0.0.1 and \
             --grpc-address=127.0.0.1",
            places(&reachable),
            open.join("; "),
            if options.is_hardened { "" } else { "--hardened, or with " }
        )
    })
}

/// Returns the services that listen beyond this machine and ask for no certificate. Those of a cloud platform are left out:
/// the platform authenticates its clients.
fn reachable(options: &ServeOptions) -> Vec<&Endpoint> {
    let TlsOptions { http, grpc, metrics } = &options.tls;
    let asks = |tls: &Option<TlsFiles>| tls.as_ref().is_some_and(|tls| tls.client_roots.is_some());
    let services = [
        (&options.http, asks(http)),
        (&options.grpc, asks(grpc)),
        (&options.metrics, *metrics && asks(http)),
    ];
    let open =
        services.into_iter().filter_map(|(service, asks)| service.as_ref().filter(|_| !asks));
    let is_reachable = |place: &PortPlace| !is_of_this_machine(&place.address);
    open.filter(|endpoint| endpoint.port().is_some_and(is_reachable)).collect()
}

fn is_of_this_machine(address: &str) -> bool {
    let address = address.trim_start_matches('[').trim_end_matches(']');
    address == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn places(endpoints: &[&Endpoint]) -> String {
    let place = |endpoint: &&Endpoint| match &endpoint.place {
        Place::Port(PortPlace { address, port: 0, .. }) => {
            format!("{address} ({})", endpoint.service)
        }
        place => format!("{place} ({})", endpoint.service),
    };
    endpoints.iter().map(place).collect::<Vec<_>>().join(", ")
}

/// Returns the actions that these services allow.
fn open(options: &ServeOptions, reachable: &[&Endpoint]) -> Vec<&'static str> {
    let serves = |service: &str| reachable.iter().any(|endpoint| endpoint.service == service);
    let (http, grpc) = (serves("HTTP"), serves("GRPC"));
    let is_open = |category| {
        http && !options.http_options.restricted_apis.restricts(category)
            || grpc && !options.grpc_options.restricted_protocols.restricts(category)
    };
    let changes = !options.is_hardened;
    let controls = changes && options.engine.control_mode == ControlMode::Explicit;
    let regions = changes && options.engine.allows_client_regions;
    let things = [
        (is_open(ApiCategory::Inference), "inference with every model"),
        (
            is_open(ApiCategory::Metadata)
                || is_open(ApiCategory::ModelConfig)
                || is_open(ApiCategory::Statistics),
            "the list of models, their configurations and figures",
        ),
        (
            controls && is_open(ApiCategory::ModelRepository),
            "model control: loading and unloading, also of files and code that the client sends \
             (--model-control-mode=explicit)",
        ),
        (changes && is_open(ApiCategory::Logging), "the settings of the log, except its file"),
        (changes && is_open(ApiCategory::Trace), "the settings of traces, except their file"),
        (
            regions && is_open(ApiCategory::SharedMemory),
            "reading and writing the shared memory of this machine (--allow-client-shm)",
        ),
        (http && options.http_options.has_console, "the console (--console=false)"),
        (serves("metrics"), "metrics"),
    ];
    things.into_iter().filter_map(|(is_open, what)| is_open.then_some(what)).collect()
}

//! Converts the text of `-u` to the target of connections.

use galatea_client::{Address, Protocol, Target};
use galatea_perf_types::{
    failure::{Failure, Result},
    settings::Settings,
};

/// Reads the address `-u` of the requests.
pub fn target(settings: &Settings) -> Result<Target> {
    let Address { endpoint, path } = read(&settings.url, settings.protocol, "-u")?;
    Ok(Target {
        protocol: settings.protocol,
        endpoint,
        base_path: path,
        headers: settings.headers.clone(),
        tls: settings.tls.clone(),
        compression: settings.compression,
    })
}

/// Reads the address at which shared memory is registered: `--shared-memory-url`, or else that of the requests.
pub fn registration_target(settings: &Settings) -> Result<Target> {
    let target = target(settings)?;
    let Some(url) = &settings.shared_memory_url else { return Ok(target) };
    let Address { endpoint, path } = read(url, Protocol::Http, "--shared-memory-url")?;
    Ok(Target { protocol: Protocol::Http, endpoint, base_path: path, tls: None, ..target })
}

fn read(url: &str, protocol: Protocol, option: &str) -> Result<Address> {
    Address::read(url, protocol).map_err(|reason| {
        Failure::option(format!("cannot use the URL '{url}' ({option}): {reason}"))
    })
}

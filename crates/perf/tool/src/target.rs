//! Converts the text of `-u` to the target of connections.

use galatea_client::{Address, Target};
use galatea_perf_types::{
    failure::{Failure, Result},
    settings::Settings,
};

/// Reads `host`, `host:port` or `[v6]:port`. A scheme of the protocol (`http://`, `https://`, `grpc://`) may precede it, and
/// over HTTP a path may follow.
pub fn target(settings: &Settings) -> Result<Target> {
    let Address { host, port, path } =
        Address::read(&settings.url, settings.protocol).map_err(|reason| {
            Failure::option(format!("cannot use the URL '{}' (-u): {reason}", settings.url))
        })?;
    Ok(Target {
        protocol: settings.protocol,
        host: host.to_owned(),
        port: port.unwrap_or(settings.protocol.default_port()),
        base_path: path.to_owned(),
        headers: settings.headers.clone(),
        tls: settings.tls.clone(),
        compression: settings.compression,
    })
}

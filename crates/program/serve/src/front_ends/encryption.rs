//! TLS of the front ends. Its files are read before anything is served, and watched afterwards.

use std::sync::Arc;

use anyhow::{Context, Result};
use galatea_frontend::{Tls, TlsProtocol, TlsReload};

use crate::options::ServeOptions;

/// Reads the certificates and gives them to the front ends that use them. The files are watched until the returned value is
/// dropped. `None`: nothing is encrypted.
pub fn open(options: &mut ServeOptions) -> Result<Option<TlsReload>> {
    let open = |files: &Option<_>, protocol, service| {
        let opened = files.clone().map(|files| Tls::open(files, protocol)).transpose();
        opened.with_context(|| format!("failed to start {service} service"))
    };
    let http = open(&options.tls.http, TlsProtocol::Http, "HTTP")?;
    let grpc = open(&options.tls.grpc, TlsProtocol::Grpc, "GRPC")?;
    options.http_options.metrics_tls = http.clone().filter(|_| options.tls.metrics);
    options.http_options.tls = http.clone();
    options.grpc_options.tls = grpc.clone();
    let watched: Vec<Arc<Tls>> = http.into_iter().chain(grpc).collect();
    if watched.is_empty() {
        return Ok(None);
    }
    TlsReload::start(watched).context("failed to start a thread").map(Some)
}

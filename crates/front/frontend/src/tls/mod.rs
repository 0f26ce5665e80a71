//! TLS on the ports of the front ends: certificates from files, handshakes, and the certificates of clients.
//!
//! A [`Tls`] is the server's side of one set of files ([`TlsFiles`]). It reads and checks them when it is opened, and
//! again whenever a file changes ([`TlsReload`]). New connections use the new certificate; open ones keep theirs.
//! Unusable files are refused with a reason and advice, and the current certificate stays in use.

mod authorities;
mod certificate;
mod error;
mod failure;
mod files;
mod handshake;
mod identity;
mod reload;
mod wrong_protocol;

use std::{fmt, path::PathBuf, sync::Arc, time::SystemTime};

use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
    version::{TLS12, TLS13},
};

pub(crate) use self::wrong_protocol::HANDSHAKE;
pub use self::{
    certificate::distinguished_name,
    error::TlsError,
    reload::{TlsReload, TlsReloadRequest},
};
use self::{files::Stamp, identity::Identity};
use crate::{heavy_work::HeavyWork, repeated_log::RepeatedLog};

/// Threads for slow signatures, shared by all connections: handshakes must not take the cores from requests.
const SIGNING_THREADS: usize = 2;

/// The number of handshakes that may wait for these threads; further ones are refused.
const SIGNING_QUEUE: usize = 1024;

/// The paths of a server's certificate files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by the chain to its authority (PEM).
    pub certificates: PathBuf,
    /// The private key of the server (PEM: PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
    /// Authorities of clients (PEM). With `Some` every client must have a certificate; with `None` the server asks for none.
    pub client_roots: Option<PathBuf>,
}

/// The protocol over TLS, as clients and the server agree on it in the handshake (ALPN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProtocol {
    /// HTTP/1.1
    Http,
    /// gRPC, over HTTP/2
    Grpc,
}

impl TlsProtocol {
    fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http => b"http/1.1",
            Self::Grpc => b"h2",
        }
    }
}

/// The TLS settings of a server, with its current certificate.
pub struct Tls {
    files: TlsFiles,
    protocol: TlsProtocol,
    current: ArcSwap<CurrentConfig>,
    signing: Arc<HeavyWork>,
    /// Failed handshakes by kind.
    failures: [RepeatedLog; failure::KINDS],
}

/// The settings for new connections.
struct CurrentConfig {
    config: Arc<ServerConfig>,
    /// Is `true` if a signature takes too long for a thread of connections.
    signs_slowly: bool,
    subject: Box<str>,
    not_before: SystemTime,
    not_after: SystemTime,
    /// The stamp of the files that were read.
    stamp: Stamp,
}

impl Tls {
    /// Reads and checks the files.
    pub fn open(files: TlsFiles, protocol: TlsProtocol) -> Result<Arc<Self>, TlsError> {
        let current = load(&files, protocol)?;
        current.log("Using");
        Ok(Arc::new(Self {
            files,
            protocol,
            current: ArcSwap::from_pointee(current),
            signing: HeavyWork::new(SIGNING_THREADS, SIGNING_QUEUE),
            failures: Default::default(),
        }))
    }

    /// Returns `true` if clients must have a certificate.
    pub fn asks_for_client_certificates(&self) -> bool {
        self.files.client_roots.is_some()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl CurrentConfig {
    fn log(&self, verb: &str) {
        let (subject, until) = (&self.subject, certificate::date(self.not_after));
        log::info!("{verb} the TLS certificate of '{subject}', valid until {until}");
    }
}

/// Reads the files and returns the settings for new connections.
fn load(files: &TlsFiles, protocol: TlsProtocol) -> Result<CurrentConfig, TlsError> {
    // The stamp is taken before the files are read, so that the next check finds a change made in between.
    let stamp = Stamp::of(files);
    let identity = Identity::read(files)?;
    let config = config(files, protocol, &identity)?;
    let Identity { signs_slowly, leaf, .. } = identity;
    let certificate::CertificateRequirement { subject, not_before, not_after, .. } = leaf;
    let config = Arc::new(config);
    Ok(CurrentConfig { config, signs_slowly, subject, not_before, not_after, stamp })
}

fn config(
    files: &TlsFiles,
    protocol: TlsProtocol,
    identity: &Identity,
) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(TlsError::SetUp)?;
    let builder = match &files.client_roots {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let roots = Arc::new(authorities::read(file)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            let verifier = verifier.map_err(|error| authorities::unusable(file, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(identity.resolver());
    config.alpn_protocols = vec![protocol.alpn().to_vec()];
    if files.client_roots.is_some() {
        // A resumed session would outlive a client's certificate or its authority.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        config.ticketer = ring::Ticketer::new().map_err(TlsError::SetUp)?;
        config.send_tls13_tickets = 1;
    }
    Ok(config)
}

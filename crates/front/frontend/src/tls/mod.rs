//! TLS on the ports of the front ends: certificates from files, handshakes, and what clients prove to be.
//!
//! A [`Tls`] is the server's side of one set of files ([`TlsFiles`]). It is read and checked when it is opened, and again
//! whenever a file changes ([`TlsReload`]): new connections take the new certificate, open ones go on with what they began
//! with. A pair of files that cannot be used is refused with what is wrong and what to do; the one in force stays.

mod accept;
mod authorities;
mod certificate;
mod error;
mod failure;
mod files;
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

/// Threads that sign where it takes long, for all connections together: handshakes are not to take the cores from
/// requests.
const SIGNING_THREADS: usize = 2;

/// Handshakes that may wait for them; further ones are refused.
const SIGNING_QUEUE: usize = 1024;

/// Where the certificates of a server are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, then those that lead to the authority (PEM).
    pub certificates: PathBuf,
    /// Its private key (PEM: PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
    /// Authorities of clients (PEM); `None`: clients are not asked for a certificate, else they must have one.
    pub client_roots: Option<PathBuf>,
}

/// What is spoken over TLS, as clients and the server agree on it in the handshake (ALPN).
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

/// TLS as a server speaks it, with the certificate that is in force.
pub struct Tls {
    files: TlsFiles,
    protocol: TlsProtocol,
    current: ArcSwap<CurrentConfig>,
    signing: Arc<HeavyWork>,
    /// By kind.
    failures: [RepeatedLog; failure::KINDS],
}

/// What connections that begin now use.
struct CurrentConfig {
    config: Arc<ServerConfig>,
    /// Whether signing takes so long that it may not hold up a thread of connections.
    signs_slowly: bool,
    subject: Box<str>,
    not_before: SystemTime,
    not_after: SystemTime,
    /// Of the files that it was made of.
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

    /// Whether clients must show a certificate.
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

/// A setting of all that the files say, for connections from now on.
fn load(files: &TlsFiles, protocol: TlsProtocol) -> Result<CurrentConfig, TlsError> {
    // Before they are read: what changes meanwhile is found at the next look.
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
        // A session taken up again would carry a client's certificate past its end, or past its authority's.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        config.ticketer = ring::Ticketer::new().map_err(TlsError::SetUp)?;
        config.send_tls13_tickets = 1;
    }
    Ok(config)
}

//! The certificates of the server that connections with TLS are made to.

use std::{path::PathBuf, sync::Arc};

use galatea_frontend::{Tls, TlsFiles, TlsProtocol};

/// The certificate for `localhost`, its key, and who signed it.
pub fn certificate(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/perf/client/tests/certificates")
        .join(file)
}

/// TLS of the server that is connected to.
pub fn server() -> Arc<Tls> {
    let files = TlsFiles {
        certificates: certificate("server.pem"),
        key: certificate("server.key"),
        client_roots: None,
    };
    Tls::open(files, TlsProtocol::Http).expect("good files")
}

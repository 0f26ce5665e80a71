//! Which services speak TLS and with what, as the flags ask for it together.

use std::path::{Path, PathBuf};

use galatea_frontend::TlsFiles;
use galatea_serve::{Note, TlsOptions};

use crate::flags::{FlagError, ServeFlags, TlsFlags};

/// The names of the options of one service.
struct Names {
    certificates: &'static str,
    key: &'static str,
    client_roots: &'static str,
}

const HTTP: Names =
    Names { certificates: "--https-cert", key: "--https-key", client_roots: "--https-root-cert" };

const GRPC: Names = Names {
    certificates: "--grpc-server-cert",
    key: "--grpc-server-key",
    client_roots: "--grpc-root-cert",
};

/// Returns the TLS options that the flags ask for, and notes flags that have no effect.
pub(super) fn tls(flags: &ServeFlags, notes: &mut Vec<Note>) -> Result<TlsOptions, FlagError> {
    let (http, metrics) = (http(&flags.http_tls)?, flags.serve.tls.metrics);
    if metrics && http.is_none() {
        return Err(rule(
            "--metrics-https needs the certificate of --https-cert and the key of --https-key.",
        ));
    }
    Ok(TlsOptions { http, grpc: grpc(&flags.grpc_tls, notes)?, metrics })
}

/// One file asks for all: that it was forgotten to encrypt would not be seen.
fn http(flags: &TlsFlags) -> Result<Option<TlsFiles>, FlagError> {
    match HTTP.given(flags).first() {
        None => Ok(None),
        Some(given) => HTTP.files(flags, given, !is_missing(&flags.client_roots)).map(Some),
    }
}

fn grpc(flags: &TlsFlags, notes: &mut Vec<Note>) -> Result<Option<TlsFiles>, FlagError> {
    if !flags.is_on {
        // As Triton: it starts without TLS, but says nothing.
        for name in GRPC.given(flags) {
            notes.push(Note::Warning(format!(
                "{name} has no effect without --grpc-use-ssl=true: gRPC connections are not encrypted"
            )));
        }
        return Ok(None);
    }
    let switch = if flags.is_mutual { "--grpc-use-ssl-mutual" } else { "--grpc-use-ssl" };
    if flags.is_mutual && is_missing(&flags.client_roots) {
        return Err(rule(&format!(
            "{switch} needs the authorities of clients in --grpc-root-cert."
        )));
    }
    if !flags.is_mutual && !is_missing(&flags.client_roots) {
        notes.push(Note::Warning(
            "--grpc-root-cert has no effect without --grpc-use-ssl-mutual=true: clients are not asked for a certificate"
                .to_owned(),
        ));
    }
    GRPC.files(flags, switch, flags.is_mutual).map(Some)
}

impl Names {
    /// The options that name a file.
    fn given(&self, flags: &TlsFlags) -> Vec<&'static str> {
        let all = [
            (self.certificates, &flags.certificates),
            (self.key, &flags.key),
            (self.client_roots, &flags.client_roots),
        ];
        all.into_iter().filter(|(_, file)| !is_missing(file)).map(|(name, _)| name).collect()
    }

    fn files(&self, flags: &TlsFlags, asked: &str, is_mutual: bool) -> Result<TlsFiles, FlagError> {
        let needs = |file: &PathBuf, what: &str, name: &str| match is_missing(file) {
            true => Err(rule(&format!("{asked} needs {what} in {name}."))),
            false => Ok(file.clone()),
        };
        Ok(TlsFiles {
            certificates: needs(
                &flags.certificates,
                "the server's certificate",
                self.certificates,
            )?,
            key: needs(&flags.key, "the key of the certificate", self.key)?,
            client_roots: is_mutual.then(|| flags.client_roots.clone()),
        })
    }
}

fn is_missing(file: &Path) -> bool {
    file.as_os_str().is_empty()
}

fn rule(text: &str) -> FlagError {
    FlagError::Rule(format!("Error: {text}"))
}

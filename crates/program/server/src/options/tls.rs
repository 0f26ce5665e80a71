//! The TLS settings of the services, from several flags.

use std::path::{Path, PathBuf};

use galatea_frontend::TlsFiles;
use galatea_serve::{Note, TlsOptions};

use crate::flags::{FlagError, ServeFlags, TlsFlags};

/// The options that name a service's certificates, their key and the authorities of clients.
type Names = [&'static str; 3];

const HTTP: Names = ["--https-cert", "--https-key", "--https-root-cert"];
const GRPC: Names = ["--grpc-server-cert", "--grpc-server-key", "--grpc-root-cert"];

/// Returns the TLS options of the flags, and notes flags without effect.
pub(super) fn tls(flags: &ServeFlags, notes: &mut Vec<Note>) -> Result<TlsOptions, FlagError> {
    let (http, metrics) = (http(&flags.http_tls)?, flags.serve.tls.metrics);
    if metrics && http.is_none() {
        return Err(rule(
            "--metrics-https needs the certificate of --https-cert and the key of --https-key.",
        ));
    }
    Ok(TlsOptions { http, grpc: grpc(&flags.grpc_tls, notes)?, metrics })
}

/// One file requires all: a missing one would leave the service unencrypted unnoticed.
fn http(flags: &TlsFlags) -> Result<Option<TlsFiles>, FlagError> {
    let asked = given(flags, HTTP).next();
    asked.map(|asked| files(flags, HTTP, asked, !is_missing(&flags.client_roots))).transpose()
}

fn grpc(flags: &TlsFlags, notes: &mut Vec<Note>) -> Result<Option<TlsFiles>, FlagError> {
    if !flags.is_on {
        // Starts without TLS, as Triton does; Triton gives no warning.
        for name in given(flags, GRPC) {
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
    files(flags, GRPC, switch, flags.is_mutual).map(Some)
}

/// Returns the options that name a file.
fn given(flags: &TlsFlags, names: Names) -> impl Iterator<Item = &'static str> {
    let files = [&flags.certificates, &flags.key, &flags.client_roots];
    files.into_iter().zip(names).filter(|(file, _)| !is_missing(file)).map(|(_, name)| name)
}

fn files(
    flags: &TlsFlags,
    [certificates, key, _]: Names,
    asked: &str,
    is_mutual: bool,
) -> Result<TlsFiles, FlagError> {
    let needs = |file: &PathBuf, what: &str, name: &str| match is_missing(file) {
        true => Err(rule(&format!("{asked} needs {what} in {name}."))),
        false => Ok(file.clone()),
    };
    Ok(TlsFiles {
        certificates: needs(&flags.certificates, "the server's certificate", certificates)?,
        key: needs(&flags.key, "the key of the certificate", key)?,
        client_roots: is_mutual.then(|| flags.client_roots.clone()),
    })
}

fn is_missing(file: &Path) -> bool {
    file.as_os_str().is_empty()
}

fn rule(text: &str) -> FlagError {
    FlagError::Rule(format!("Error: {text}"))
}

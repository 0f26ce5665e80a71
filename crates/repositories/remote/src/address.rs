//! Parses addresses of object stores in Triton's forms.

use crate::error::{FailureKind, RemoteError};

/// The address of a repository in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Protocol of the store.
    pub service: Service,
    /// Scheme, host and port, if the address names a server: an emulator or a private store.
    pub endpoint: Option<String>,
    /// Account, for Azure only.
    pub account: Option<String>,
    /// Bucket or container.
    pub bucket: String,
    /// Path in the bucket, without slashes at its ends. Empty for the whole bucket.
    pub path: String,
}

/// The protocols of object stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3 and stores with its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

impl Service {
    /// Returns the scheme of its addresses, which is also its key in the credential file.
    pub fn key(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "as",
        }
    }
}

fn invalid(text: String) -> RemoteError {
    RemoteError::new(FailureKind::Invalid, text)
}

fn no_bucket(given: &str) -> RemoteError {
    invalid(format!("No bucket name found in path: {given}"))
}

/// Parses an address. Returns `None` if it is not that of an object store. Errors have Triton's words.
pub fn parse(given: &str) -> Option<Result<Address, RemoteError>> {
    let (scheme, rest) = given.split_once("://")?;
    match scheme {
        "s3" => Some(of_s3(given, rest)),
        "gs" => Some(of_gcs(given, rest)),
        "as" => Some(of_azure(given, rest)),
        _ => None,
    }
}

/// Parses `bucket/path`, optionally with a server: `host:port/...`, `http://host:port/...`, `https://host:port/...`.
fn of_s3(given: &str, rest: &str) -> Result<Address, RemoteError> {
    let (scheme, rest) = scheme_of(rest);
    let mut parts = parts_of(rest).peekable();
    if parts.peek().is_none() {
        return Err(invalid(format!("Invalid bucket name: '{rest}'")));
    }
    let endpoint = parts.next_if(|first| scheme.is_some() || has_port(first));
    let endpoint = endpoint.map(|host| format!("{}://{host}", scheme.unwrap_or("http")));
    let bucket = parts.next().ok_or_else(|| no_bucket(given))?;
    let (bucket, path) = (bucket.to_owned(), joined(parts));
    Ok(Address { service: Service::S3, endpoint, account: None, bucket, path })
}

fn of_gcs(given: &str, rest: &str) -> Result<Address, RemoteError> {
    let mut parts = parts_of(rest);
    let bucket = parts.next().ok_or_else(|| no_bucket(given))?;
    let (bucket, path) = (bucket.to_owned(), joined(parts));
    Ok(Address { service: Service::Gcs, endpoint: None, account: None, bucket, path })
}

/// Parses `account/container/path`. The account may include its host, and a server may come first.
fn of_azure(given: &str, rest: &str) -> Result<Address, RemoteError> {
    let missing = || {
        invalid(format!("Invalid azure storage path: {given}; it is as://ACCOUNT/CONTAINER/PATH"))
    };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    let (scheme, rest) = scheme_of(rest);
    let mut parts = parts_of(rest).peekable();
    let host = parts.next_if(|first| scheme.is_some() || has_port(first));
    let account = parts.next().ok_or_else(missing)?;
    let account = account.strip_suffix(".blob.core.windows.net").unwrap_or(account);
    let endpoint = host.map(|host| format!("{}://{host}/{account}", scheme.unwrap_or("http")));
    let bucket = parts.next().ok_or_else(missing)?;
    let (account, bucket, path) = (Some(account.to_owned()), bucket.to_owned(), joined(parts));
    Ok(Address { service: Service::Azure, endpoint, account, bucket, path })
}

/// Splits a text at slashes. As in Triton, slashes may be repeated.
fn parts_of(text: &str) -> impl Iterator<Item = &str> {
    text.split('/').filter(|part| !part.is_empty())
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join("/")
}

fn scheme_of(rest: &str) -> (Option<&'static str>, &str) {
    for (start, scheme) in [("https://", "https"), ("http://", "http")] {
        if let Some(rest) = rest.strip_prefix(start) {
            return (Some(scheme), rest);
        }
    }
    (None, rest)
}

fn has_port(part: &str) -> bool {
    let Some((host, port)) = part.rsplit_once(':') else { return false };
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    !host.is_empty() && is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(given: &str) -> String {
        match parse(given) {
            None => "none".to_owned(),
            Some(Err(error)) => format!("error: {error}"),
            Some(Ok(found)) => {
                let endpoint = found.endpoint.unwrap_or_default();
                let account = found.account.unwrap_or_default();
                [found.service.key(), &endpoint, &account, &found.bucket, &found.path].join(" ")
            }
        }
    }

    #[test]
    fn every_address_form_of_triton_is_parsed() {
        for (given, expected) in [
            ("s3://models", "s3   models "),
            ("s3://models/", "s3   models "),
            ("s3://models/a/b", "s3   models a/b"),
            ("s3:////models//a///b//", "s3   models a/b"),
            ("s3://127.0.0.1:9000/models/a", "s3 http://127.0.0.1:9000  models a"),
            ("s3://http://minio:9000/models", "s3 http://minio:9000  models "),
            ("s3://https://minio.local:443//models/a", "s3 https://minio.local:443  models a"),
            ("s3://https://minio.local/models", "s3 https://minio.local  models "),
            ("s3://[::1]:9000/models", "s3 http://[::1]:9000  models "),
            ("gs://models/a b/c", "gs   models a b/c"),
            ("gs://models//", "gs   models "),
            ("as://account/box", "as  account box "),
            ("as://account/box/a/b?x=y", "as  account box a/b"),
            ("as://account.blob.core.windows.net/box/a", "as  account box a"),
            ("as://127.0.0.1:10000/dev/box/a", "as http://127.0.0.1:10000/dev dev box a"),
            ("as://https://h:1/dev/box", "as https://h:1/dev dev box "),
            ("s3://", "error: Invalid bucket name: ''"),
            ("s3://host:80", "error: No bucket name found in path: s3://host:80"),
            ("gs:///", "error: No bucket name found in path: gs:///"),
            (
                "as://a",
                "error: Invalid azure storage path: as://a; it is as://ACCOUNT/CONTAINER/PATH",
            ),
            ("/models", "none"),
            ("file://models", "none"),
        ] {
            assert_eq!(show(given), expected, "{given}");
        }
    }
}

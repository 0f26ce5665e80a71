//! Reads the bytes of an archive during its download, for a blocking reader. Resumes if the connection breaks.

use std::{
    io::{self, Read},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::StreamExt;
use galatea_web_client::{Get, WebClient};
use http::{
    HeaderMap, HeaderValue,
    header::{ETAG, IF_RANGE},
};
use sha2::{Digest, Sha256};

use super::address::ArchiveAddress;
use crate::{
    error::{FailureKind, RemoteError},
    hex,
    remote_files::ByteStream,
    retry::{Resume, retried},
    web,
};

/// Most bytes of an archive.
const MAX_BYTES: u64 = 1 << 40;

/// Bytes that are collected for one call of the reader.
const BLOCK: usize = 256 << 10;

/// An archive that is being read. Its version and length are those of the first response.
pub struct Download {
    network: Arc<WebClient>,
    state: Option<State>,
    block: Bytes,
    digest: Sha256,
    /// The failure that ended it, for the reader's caller: readers know only what fits into an error of the system.
    pub failure: Option<RemoteError>,
    /// Bytes of the whole archive, if the server sends the number.
    pub length: Option<u64>,
}

struct State {
    network: Arc<WebClient>,
    asked: Get,
    etag: Option<HeaderValue>,
    bytes: Option<ByteStream>,
    position: u64,
    length: Option<u64>,
    resume: Resume,
}

impl Download {
    /// Requests the archive, and repeats that while the server does not answer.
    ///
    /// # Errors
    /// The server's answer.
    pub fn start(network: &Arc<WebClient>, address: &ArchiveAddress) -> Result<Self, RemoteError> {
        let asked = Get::new(address.uri.clone(), MAX_BYTES);
        let inner = network.clone();
        let state = network
            .wait(async move { retried(|| State::open(inner.clone(), asked.clone())).await })?;
        Ok(Self {
            network: network.clone(),
            length: state.length,
            state: Some(state),
            block: Bytes::new(),
            digest: Sha256::new(),
            failure: None,
        })
    }

    /// Reads the rest, and compares the whole with the digest.
    ///
    /// # Errors
    /// When the archive is a different one.
    pub fn check(mut self, address: &ArchiveAddress) -> Result<(), RemoteError> {
        if let Err(error) = io::copy(&mut self, &mut io::sink()) {
            return Err(self
                .failure
                .unwrap_or_else(|| RemoteError::new(FailureKind::Unavailable, error.to_string())));
        }
        let found: [u8; 32] = self.digest.finalize().into();
        if found == address.sha256 {
            return Ok(());
        }
        let text = format!(
            "it is not the archive that was named: its SHA-256 digest is {} and not {}; it is not used",
            hex::encoded(&found),
            address.digest
        );
        Err(RemoteError::new(FailureKind::Invalid, text))
    }

    fn next_block(&mut self) -> Result<Bytes, RemoteError> {
        let Some(state) = self.state.take() else { return Ok(Bytes::new()) };
        let (state, block) = self.network.wait(async move { state.block().await })?;
        self.state = Some(state);
        Ok(block)
    }
}

impl Read for Download {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.is_empty() {
            match self.next_block() {
                Ok(block) => self.block = block,
                Err(error) => {
                    self.failure = Some(error.clone());
                    return Err(io::Error::other(error));
                }
            }
        }
        let length = self.block.len().min(buffer.len());
        let part = self.block.split_to(length);
        if let Some(place) = buffer.get_mut(..length) {
            place.copy_from_slice(&part);
        }
        self.digest.update(&part);
        Ok(length)
    }
}

impl State {
    async fn open(network: Arc<WebClient>, asked: Get) -> Result<Self, RemoteError> {
        let answer = network.http().get(&asked).await?;
        let headers = answer.response.headers();
        if !answer.status.is_success() {
            return Err(refused(answer.status, headers));
        }
        let (etag, length) = (strong_etag(headers), answer.length());
        let bytes = Some(web::bytes_from(answer, 0)?);
        let resume = Resume::at(0);
        Ok(Self { network, asked, etag, bytes, position: 0, length, resume })
    }

    /// Returns further bytes, or none at the end.
    async fn block(mut self) -> Result<(Self, Bytes), RemoteError> {
        loop {
            let failure = match self.read().await {
                Ok(block)
                    if block.is_empty() && self.length.is_some_and(|all| self.position < all) =>
                {
                    RemoteError::new(FailureKind::Unavailable, "the answer ended early")
                }
                Ok(block) => return Ok((self, block)),
                Err(failure) => failure,
            };
            self.reopen(failure).await?;
        }
    }

    async fn read(&mut self) -> Result<Bytes, RemoteError> {
        let mut block = Vec::new();
        let Some(bytes) = &mut self.bytes else { return Ok(Bytes::new()) };
        while block.len() < BLOCK {
            match bytes.next().await {
                Some(Ok(next)) => block.extend_from_slice(&next),
                // Bytes before a failure count. The failure is reported later, or does not come again.
                Some(Err(failure)) if block.is_empty() => return Err(failure),
                Some(Err(failure)) => {
                    self.bytes = Some(futures_util::stream::iter([Err(failure)]).boxed());
                    break;
                }
                None => break,
            }
        }
        self.position += block.len() as u64;
        Ok(block.into())
    }

    /// Requests the rest of the same archive after a break.
    async fn reopen(&mut self, mut failure: RemoteError) -> Result<(), RemoteError> {
        loop {
            self.resume.wait(failure, self.position, "an archive").await?;
            match self.rest().await {
                Ok(bytes) => {
                    self.bytes = Some(bytes);
                    return Ok(());
                }
                Err(next) => failure = next,
            }
        }
    }

    async fn rest(&mut self) -> Result<ByteStream, RemoteError> {
        let mut asked = self.asked.clone();
        asked.from = self.position;
        if let Some(etag) = &self.etag {
            asked.headers.insert(IF_RANGE, etag.clone());
        }
        let answer = self.network.http().get(&asked).await?;
        let headers = answer.response.headers();
        if !answer.status.is_success() {
            return Err(refused(answer.status, headers));
        }
        if strong_etag(headers) != self.etag {
            let text = "it was replaced by another while it was fetched";
            return Err(RemoteError::new(FailureKind::Changed, text));
        }
        web::bytes_from(answer, self.position)
    }
}

/// Returns the ETag. A weak one does not say that the bytes are the same.
fn strong_etag(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(ETAG).filter(|etag| !etag.as_bytes().starts_with(b"W/")).cloned()
}

fn refused(status: http::StatusCode, headers: &HeaderMap) -> RemoteError {
    let advice = match status.as_u16() {
        401 | 403 => ": access is denied, or the signature in its address has expired",
        404 | 410 => ": there is no such file",
        _ => "",
    };
    web::of_status(
        status,
        headers,
        format!("the server answered with status {}{advice}", status.as_u16()),
    )
}

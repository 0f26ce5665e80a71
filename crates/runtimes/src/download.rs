//! Downloading one file, resumably: what was received stays in a `.part` file, and the next attempt requests the
//! rest by a range.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
};

use galatea_types::{Error, Result};
use sha2::{Digest, Sha256};
use ureq::Agent;

use crate::{
    error::{DownloadError, RuntimeError},
    http::{split_credentials, without_credentials},
    progress::Progress,
};

/// Attempts in one go, each where the one before stopped.
const ATTEMPTS: usize = 4;

/// No file that is pinned is as long: what is longer would only fill the disk until its content is compared.
const LONGEST: u64 = 1 << 30;

/// Fetches `url` into `part`, going on with what is there.
pub(crate) fn download(
    agent: &Agent,
    url: &str,
    filename: &str,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut attempt = 1;
    loop {
        let before = size_of(part);
        let fetched = fetch(agent, url, filename, part, progress);
        progress.finished();
        let Err(reason) = fetched else { return Ok(()) };
        if matches!(reason, DownloadError::Write(_) | DownloadError::TooLong) {
            // What is there of it would only keep a full disk full.
            let _ = fs::remove_file(part);
        }
        let error = Error::from(RuntimeError::Download { url: without_credentials(url), reason });
        // An attempt that brought something is worth another.
        if attempt == ATTEMPTS || size_of(part) <= before {
            return Err(error);
        }
        progress.note(&format!("{error}; trying again"));
        attempt += 1;
    }
}

fn size_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |m| m.len())
}

fn fetch(
    agent: &Agent,
    url: &str,
    filename: &str,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<(), DownloadError> {
    let here = size_of(part);
    let (address, credentials) = split_credentials(url);
    let mut request = agent.get(&address).header("Accept-Encoding", "identity");
    if let Some(credentials) = credentials {
        request = request.header("Authorization", credentials);
    }
    if here > 0 {
        request = request.header("Range", format!("bytes={here}-"));
    }
    let mut response = request.call()?;
    let start = match response.status().as_u16() {
        200 => 0,
        206 if content_start(&response) == Some(here) => here,
        // The part is as long as the file, or longer, or not what the server would send.
        206 | 416 => {
            fs::remove_file(part)?;
            return fetch(agent, url, filename, part, progress);
        }
        status => return Err(DownloadError::Status(status)),
    };
    let total = response.body().content_length().map(|rest| start.saturating_add(rest));
    if total.is_some_and(|total| total > LONGEST) {
        return Err(DownloadError::TooLong);
    }
    progress.started(filename, start, total);
    let mut file = open_part(part, start).map_err(DownloadError::Write)?;
    let mut done = start;
    let copied = copy(&mut response.body_mut().as_reader(), &mut file, &mut done, progress);
    match (copied, total) {
        (Err(DownloadError::Io(error)), Some(total)) => {
            Err(DownloadError::Cut { done, total, source: Some(error) })
        }
        (Err(error), _) => Err(error),
        (Ok(()), Some(total)) if done < total => {
            Err(DownloadError::Cut { done, total, source: None })
        }
        (Ok(()), _) => file.sync_all().map_err(DownloadError::Write),
    }
}

/// Where a partial answer starts: `Content-Range: bytes 100-199/200`.
fn content_start(response: &ureq::http::Response<ureq::Body>) -> Option<u64> {
    let range = response.headers().get("content-range")?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}

fn open_part(part: &Path, start: u64) -> io::Result<File> {
    let append = start > 0;
    OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(part)
}

/// Counts in `done` what is written: the next attempt builds on it.
fn copy(
    from: &mut dyn Read,
    to: &mut File,
    done: &mut u64,
    progress: &mut dyn Progress,
) -> Result<(), DownloadError> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e.into()),
        };
        to.write_all(buffer.get(..count).unwrap_or_default()).map_err(DownloadError::Write)?;
        *done += count as u64;
        if *done > LONGEST {
            return Err(DownloadError::TooLong);
        }
        progress.advanced(*done);
    }
}

/// Hexadecimal sha256 of a file.
pub(crate) fn sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => hash.update(buffer.get(..count).unwrap_or_default()),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

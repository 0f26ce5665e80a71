//! Downloads one file and resumes after interruptions. Received data stays in a `.part` file, and the next attempt requests
//! the rest by a range.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    time::{Duration, Instant},
};

use galatea_types::{Error, Result};
use galatea_web_client::Problem;
use sha2::{Digest, Sha256};

use crate::{
    error::DownloadError,
    http::{IndexClient, asked, without_credentials},
    progress::Progress,
};

/// Most attempts of one download. Each continues where the last one stopped.
const ATTEMPTS: usize = 4;

/// Most bytes of a file. No pinned file is as long: a longer one would only fill the disk until its content is compared.
const LONGEST: u64 = 1 << 30;

/// Fetches `url` into `part`, and resumes if part of it exists.
pub(crate) fn download(
    client: &IndexClient,
    url: &str,
    filename: &str,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut attempt = 1;
    loop {
        let before = size_of(part);
        let fetched = fetch(client, url, filename, part, progress);
        progress.finished();
        let Err(reason) = fetched else { return Ok(()) };
        if matches!(reason, DownloadError::Write(_) | DownloadError::TooLong) {
            // The partial file would only keep a full disk full.
            let _ = fs::remove_file(part);
        }
        let is_ended =
            matches!(&reason, DownloadError::Http(failure) if failure.problem() == Problem::Local);
        let url = without_credentials(url);
        let error = Error::unavailable(format!("cannot download '{url}': {reason}"));
        // An attempt that received data is worth another.
        if is_ended || attempt == ATTEMPTS || size_of(part) <= before {
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
    client: &IndexClient,
    url: &str,
    filename: &str,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<(), DownloadError> {
    let here = size_of(part);
    let mut asked = asked(url, LONGEST.saturating_sub(here))?;
    asked.from = here;
    let begun = Instant::now();
    let answer = client.get(asked, &mut || progress.waits(since(begun)))?;
    let start = match answer.status.as_u16() {
        200 => 0,
        206 if answer.range_start() == Some(here) => here,
        // The part is as long as the file, or longer, or differs from the server's file.
        206 | 416 => {
            fs::remove_file(part).map_err(DownloadError::Write)?;
            return fetch(client, url, filename, part, progress);
        }
        status => return Err(DownloadError::Status(status)),
    };
    let total = answer.length().map(|rest| start.saturating_add(rest));
    if total.is_some_and(|total| total > LONGEST) {
        return Err(DownloadError::TooLong);
    }
    progress.started(filename, start, total);
    let mut file = open_part(part, start).map_err(DownloadError::Write)?;
    let mut done = start;
    let mut body = answer.response.into_body();
    loop {
        let next = client.client.wait_with(body.next(), &mut || progress.waits(since(begun)));
        let bytes = match (next, total) {
            (Ok(Some((bytes, rest))), _) => {
                body = rest;
                bytes
            }
            (Ok(None), Some(total)) if done < total => {
                return Err(DownloadError::Cut { done, total, source: None });
            }
            (Ok(None), _) => return file.sync_all().map_err(DownloadError::Write),
            (Err(failure), Some(total)) if failure.problem() == Problem::Broken => {
                return Err(DownloadError::Cut { done, total, source: Some(failure) });
            }
            (Err(failure), _) => return Err(failure.into()),
        };
        file.write_all(&bytes).map_err(DownloadError::Write)?;
        done += bytes.len() as u64;
        progress.advanced(done);
    }
}

#[expect(clippy::disallowed_methods, reason = "the time that work takes is shown")]
pub(crate) fn since(start: Instant) -> Duration {
    start.elapsed()
}

fn open_part(part: &Path, start: u64) -> io::Result<File> {
    let append = start > 0;
    OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(part)
}

/// Returns the hexadecimal sha256 of a file.
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

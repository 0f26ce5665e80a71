//! Files that hold a whole JSON array whenever nothing is being written.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IoSlice, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The file of the traces, and the numbered ones beside it.
pub(super) struct Output {
    path: PathBuf,
    next_number: u64,
    /// The bytes of the file; `None`: it is not begun. A file of an earlier server is replaced.
    length: Option<u64>,
    /// The last write failed.
    has_failed: bool,
    /// Traces that could not be written.
    lost: Arc<AtomicU64>,
}

impl Output {
    pub fn new(path: PathBuf, lost: Arc<AtomicU64>) -> Self {
        Self { path, next_number: 0, length: None, has_failed: false, lost }
    }

    /// Appends `count` traces to the file.
    pub fn append(&mut self, traces: &str, count: u32) {
        let appended = match self.length {
            Some(length) => append(&self.path, length, traces),
            None => begin(&self.path, traces),
        };
        match appended {
            Ok(length) => {
                self.length = Some(length);
                self.has_failed = false;
            }
            Err(error) => self.lose(&self.path.clone(), count, &error),
        }
    }

    /// Writes `count` traces to the next numbered file.
    pub fn write_numbered(&mut self, traces: &str, count: u32) {
        let path = with_suffix(&self.path, &self.next_number.to_string());
        match replace(&path, traces) {
            Ok(_) => {
                self.next_number += 1;
                self.has_failed = false;
            }
            Err(error) => self.lose(&path, count, &error),
        }
    }

    /// Reports the first of several failures.
    fn lose(&mut self, path: &Path, count: u32, error: &io::Error) {
        if !std::mem::replace(&mut self.has_failed, true) {
            log::error!(
                "failed to write {count} traces to '{}': {error}; traces are lost until it can be written",
                path.display()
            );
        }
        self.lost.fetch_add(u64::from(count), Ordering::Relaxed);
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Begins the file anew. Anything that is no ordinary file is refused: a device cannot hold an array that grows, and a link,
/// such as /dev/stdout, would be replaced itself.
fn begin(path: &Path, traces: &str) -> io::Result<u64> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other("it is a link: give the file that it leads to"))
        }
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a regular file")),
        _ => replace(path, traces),
    }
}

/// Replaces a file in one step: readers see the old one or the whole new one. Returns its length.
fn replace(path: &Path, traces: &str) -> io::Result<u64> {
    let part = with_suffix(path, "part");
    // Whatever is there is removed and not opened: a pipe would block, and a link would lead to a file of others.
    let _ = fs::remove_file(&part);
    let written = File::create_new(&part).and_then(|mut file| {
        write_parts(&mut file, ["[", traces, "]"])?;
        fs::rename(&part, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written.map(|()| traces.len() as u64 + 2)
}

/// Writes over the end of the array in a file of `length` bytes. A file that somebody has moved or changed is begun anew.
fn append(path: &Path, length: u64, traces: &str) -> io::Result<u64> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return begin(path, traces),
        opened => opened?,
    };
    if file.metadata()?.len() != length || !ends_an_array(&mut file, length)? {
        return begin(path, traces);
    }
    let end = SeekFrom::Start(length - 1);
    file.seek(end)?;
    match write_parts(&mut file, [",", traces, "]"]) {
        Ok(()) => Ok(length + traces.len() as u64 + 1),
        Err(error) => {
            file.set_len(length)?;
            file.seek(end)?;
            file.write_all(b"]")?;
            Err(error)
        }
    }
}

/// Writes texts one behind the other, in one call where the system takes all.
fn write_parts(file: &mut File, parts: [&str; 3]) -> io::Result<()> {
    let mut parts = parts.map(|part| IoSlice::new(part.as_bytes()));
    let mut left = &mut parts[..];
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn ends_an_array(file: &mut File, length: u64) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::Start(length.saturating_sub(1)))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"]")
}

//! Unpacks tar archives safely. Nothing is written, and no link leads, outside of the target folder. The size is limited: a
//! few megabytes of an archive may unpack to any number of terabytes.

#![warn(missing_docs)]

mod bounded_reader;
#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    fs::{self, File},
    io::{self, BufReader, Read, Seek},
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
    rc::Rc,
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};
use thiserror::Error;

use self::bounded_reader::BoundedReader;

/// Limits of the unpacked content of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all files together, holes of sparse files included.
    pub bytes: u64,
    /// Number of files, folders and links together.
    pub files: u64,
}

/// Most bytes of headers, long names and extended attributes of one entry.
const MAX_HEADERS: u64 = 1 << 20;
/// Most bytes of names and targets of all symbolic links, which are kept until the end.
const MAX_LINK_BYTES: usize = 64 << 20;

/// Longest path that the system allows, in bytes.
const LONGEST_PATH: usize = 4096;

/// Interval between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The reason why an archive is not unpacked. Files written until then stay in the folder.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// The archive cannot be read, or its bytes are not those of an archive.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file is of another kind.
    #[error("is not a tar.gz archive")]
    Kind,
    /// It has more bytes than [`Bounds::bytes`].
    #[error("it holds more than {0} bytes")]
    TooManyBytes(u64),
    /// It has more entries than [`Bounds::files`].
    #[error("it holds more than {0} files")]
    TooManyFiles(u64),
    /// Headers or links exceed their fixed limits.
    #[error("it has headers or links that are too long")]
    Headers,
    /// An entry would do harm.
    #[error("entry '{}' {reason}", path.display())]
    Unsafe {
        /// Path in the archive.
        path: PathBuf,
        /// The harm.
        reason: &'static str,
    },
    /// This machine failed to write a file.
    #[error("cannot write '{}': {error}", path.display())]
    Write {
        /// Path in the folder.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
}

/// Returns true if a file begins like an archive that [`unpack`] reads.
pub fn is_archive(path: &Path) -> bool {
    File::open(path).and_then(|mut file| kind(&mut file)).is_ok_and(|kind| kind.is_some())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gzip,
    Plain,
}

fn kind(file: &mut File) -> io::Result<Option<Kind>> {
    let mut start = Vec::new();
    file.by_ref().take(512).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(if start.starts_with(&[0x1f, 0x8b]) {
        Some(Kind::Gzip)
    } else {
        // The magic of every tar format in use.
        (start.get(257..262) == Some(b"ustar")).then_some(Kind::Plain)
    })
}

/// Unpacks `archive` into the new `folder`. A venv's links to the interpreter it was created with (`bin/python` to a path
/// elsewhere) are left out: they are valid only on the machine that packed it.
///
/// # Errors
/// See [`UnpackError`].
pub fn unpack(
    archive: &Path,
    folder: &Path,
    bounds: Bounds,
    watch: &mut dyn Watch,
) -> Result<(), UnpackError> {
    let mut file = File::open(archive).map_err(UnpackError::Read)?;
    let kind = kind(&mut file).map_err(UnpackError::Read)?.ok_or(UnpackError::Kind)?;
    let file = BufReader::with_capacity(1 << 16, file);
    let reader: Box<dyn Read> = match kind {
        Kind::Gzip => Box::new(MultiGzDecoder::new(file)),
        Kind::Plain => Box::new(file),
    };
    unpack_tar(reader, folder, bounds, watch)
}

/// Callbacks during unpacking.
pub trait Watch {
    /// Makes room for `bytes` in all, including the next entry. Called before anything of the entry is written.
    ///
    /// # Errors
    /// When there is no room. Then nothing more is written.
    fn make_room(&mut self, bytes: u64) -> io::Result<()>;

    /// Called from time to time with the number of bytes so far.
    fn show_progress(&mut self, bytes: u64);
}

/// Never runs out of room, and shows nothing.
impl Watch for () {
    fn make_room(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn show_progress(&mut self, _: u64) {}
}

/// Unpacks a compressed archive that is read as it comes, from its first byte on.
///
/// # Errors
/// See [`UnpackError`].
pub fn unpack_gzip(
    archive: impl Read,
    folder: &Path,
    bounds: Bounds,
    watch: &mut dyn Watch,
) -> Result<(), UnpackError> {
    let archive = BufReader::with_capacity(1 << 16, archive);
    unpack_tar(Box::new(MultiGzDecoder::new(archive)), folder, bounds, watch)
}

fn unpack_tar(
    reader: Box<dyn Read + '_>,
    folder: &Path,
    bounds: Bounds,
    watch: &mut dyn Watch,
) -> Result<(), UnpackError> {
    let allowance = Rc::default();
    fs::create_dir_all(folder)
        .map_err(|error| UnpackError::Write { path: folder.to_owned(), error })?;
    let folder = fs::canonicalize(folder).map_err(UnpackError::Read)?;
    let mut archive = Archive::new(BoundedReader { reader, allowance: Rc::clone(&allowance) });
    let links = Vec::new();
    let mut unpacking = Unpacking { folder: &folder, bounds, allowance, links, link_bytes: 0 };
    unpacking.files(&mut archive, watch)?;
    unpacking.links()
}

type Source<'a> = BoundedReader<Box<dyn Read + 'a>>;

struct Unpacking<'a> {
    folder: &'a Path,
    bounds: Bounds,
    /// Bytes that the archive's reader may still read.
    allowance: Rc<Cell<u64>>,
    /// Links, created when all files exist, so that no file is ever written through a link.
    links: Vec<(PathBuf, PathBuf)>,
    link_bytes: usize,
}

impl Unpacking<'_> {
    #[expect(clippy::disallowed_methods, reason = "progress is shown as time passes")]
    fn files(
        &mut self,
        archive: &mut Archive<Source<'_>>,
        watch: &mut dyn Watch,
    ) -> Result<(), UnpackError> {
        let mut reported = Instant::now();
        let (mut files, mut bytes) = (0, 0_u64);
        self.allowance.set(MAX_HEADERS);
        for entry in archive.entries().map_err(UnpackError::Read)? {
            let entry = entry.map_err(|error| match self.allowance.get() == 0 {
                true => UnpackError::Headers,
                false => UnpackError::Read(error),
            })?;
            files += 1 + self.unnamed_folders(&entry);
            bytes = bytes.saturating_add(entry.size());
            self.check(files, bytes)?;
            watch
                .make_room(bytes)
                .map_err(|error| UnpackError::Write { path: self.folder.to_owned(), error })?;
            // Allows the entry's own bytes and the headers of the next.
            let stored = match entry.header().entry_type() {
                // Its size counts the holes, which are not stored.
                EntryType::GNUSparse => entry.header().entry_size().map_err(UnpackError::Read)?,
                _ => entry.size(),
            };
            self.allowance.set(stored.saturating_add(MAX_HEADERS));
            self.entry(entry)?;
            if reported.elapsed() > PROGRESS_INTERVAL {
                reported = Instant::now();
                watch.show_progress(bytes);
            }
        }
        Ok(())
    }

    /// Counts the missing folders that an entry creates implicitly.
    fn unnamed_folders(&self, entry: &Entry<'_, Source<'_>>) -> u64 {
        let Some(inside) = entry.path().ok().and_then(|path| inside(&path)) else { return 0 };
        let target = self.folder.join(inside);
        if target.as_os_str().len() > LONGEST_PATH {
            return 0;
        }
        target.ancestors().skip(1).take_while(|folder| !folder.exists()).map(|_| 1).sum()
    }

    /// Checks the limits before anything of the entry is written.
    fn check(&self, files: u64, bytes: u64) -> Result<(), UnpackError> {
        let Bounds { bytes: max_bytes, files: max_files } = self.bounds;
        if bytes > max_bytes {
            return Err(UnpackError::TooManyBytes(max_bytes));
        }
        if files > max_files {
            return Err(UnpackError::TooManyFiles(max_files));
        }
        Ok(())
    }

    fn entry(&mut self, mut entry: Entry<'_, Source<'_>>) -> Result<(), UnpackError> {
        let path = entry.path().map_err(UnpackError::Read)?.into_owned();
        let unsafe_entry = |reason| UnpackError::Unsafe { path: path.clone(), reason };
        let inside =
            inside(&path).ok_or_else(|| unsafe_entry("would be written outside of the folder"))?;
        let target = self.folder.join(&inside);
        let not_written = |error| UnpackError::Write { path: target.clone(), error };
        match entry.header().entry_type() {
            EntryType::Directory => fs::create_dir_all(&target).map_err(not_written),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                make_parent(&target).map_err(not_written)?;
                entry.unpack(&target).map(drop).map_err(|error| reading_or_writing(error, target))
            }
            EntryType::Link => {
                let source = link_target(&entry)?;
                let source = self::inside(&source)
                    .ok_or_else(|| unsafe_entry("is a link that leads outside of the folder"))?;
                make_parent(&target).map_err(not_written)?;
                fs::hard_link(self.folder.join(source), &target).map_err(not_written)
            }
            EntryType::Symlink => {
                let leads_to = link_target(&entry)?;
                self.link_bytes += inside.as_os_str().len() + leads_to.as_os_str().len();
                self.links.push((inside, leads_to));
                match self.link_bytes > MAX_LINK_BYTES {
                    true => Err(UnpackError::Headers),
                    false => Ok(()),
                }
            }
            EntryType::XGlobalHeader => Ok(()),
            _ => Err(unsafe_entry("is neither a file nor a folder nor a link")),
        }
    }

    fn links(&self) -> Result<(), UnpackError> {
        for (path, target) in &self.links {
            let reason = "is a link that leads outside of the folder";
            let unsafe_link = || UnpackError::Unsafe { path: path.clone(), reason };
            let from = path.parent().unwrap_or(Path::new(""));
            if target.is_absolute() || inside(&from.join(target)).is_none() {
                if is_interpreter(path) {
                    continue;
                }
                return Err(unsafe_link());
            }
            self.link(path, target)?;
            // Behind other links '..' can be another folder than the path suggests.
            if fs::canonicalize(self.folder.join(path)).is_ok_and(|p| !p.starts_with(self.folder)) {
                return Err(unsafe_link());
            }
        }
        Ok(())
    }

    fn link(&self, path: &Path, target: &Path) -> Result<(), UnpackError> {
        let place = self.folder.join(path);
        let not_written = |error| UnpackError::Write { path: place.clone(), error };
        make_parent(&place).map_err(not_written)?;
        let parent = place.parent().unwrap_or(self.folder);
        let real = fs::canonicalize(parent).map_err(not_written)?;
        if real != parent {
            let reason = "lies behind a link";
            return Err(UnpackError::Unsafe { path: path.to_owned(), reason });
        }
        symlink(target, &place).map_err(not_written)
    }
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Separates errors: the library has one error type for reading the archive and writing the file.
fn reading_or_writing(error: io::Error, path: PathBuf) -> UnpackError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            UnpackError::Read(error)
        }
        _ => UnpackError::Write { path, error },
    }
}

fn link_target(entry: &Entry<'_, Source<'_>>) -> Result<PathBuf, UnpackError> {
    let target = entry.link_name().map_err(UnpackError::Read)?;
    Ok(target.map(|t| t.into_owned()).unwrap_or_default())
}

/// Returns the path with `.` and `..` resolved, or `None` if it is absolute or leaves the folder.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            Component::ParentDir if inside.pop() => {}
            _ => return None,
        }
    }
    Some(inside)
}

/// Matches `bin/python`, `bin/python3.11` and the like.
fn is_interpreter(path: &Path) -> bool {
    let is_python = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"python"));
    is_python && path.parent().is_some_and(|parent| parent.ends_with("bin"))
}

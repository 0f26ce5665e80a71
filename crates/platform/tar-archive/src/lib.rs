//! Unpacking a tar archive so that nothing is written, and no link leads, outside of the target folder, and no more
//! than a bound: a few megabytes of an archive can be any number of terabytes unpacked.

#![warn(missing_docs)]

mod metered;
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

use self::metered::BoundedReader;

/// What an archive may unpack to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of all files together, holes of sparse files included.
    pub bytes: u64,
    /// Files, folders and links together.
    pub files: u64,
}

/// Headers, long names and extended attributes of one entry, at most.
const MAX_HEADERS: u64 = 1 << 20;
/// Names and targets of all symbolic links, which are kept until the end.
const MAX_LINK_BYTES: usize = 64 << 20;

/// The system makes nothing with a longer one.
const LONGEST_PATH: usize = 4096;

/// Interval between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Why an archive is not unpacked. What was written until then stays in the folder.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// Its bytes do not come, or are none of an archive.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("is no tar.gz archive")]
    Kind,
    /// More bytes than [`Bounds::bytes`].
    #[error("it holds more than {0} bytes")]
    TooManyBytes(u64),
    /// More than [`Bounds::files`].
    #[error("it holds more than {0} files")]
    TooManyFiles(u64),
    /// What has no bound of its own.
    #[error("it has headers or links of an absurd length")]
    Headers,
    /// An entry that would do harm.
    #[error("entry '{}' {reason}", path.display())]
    Unsafe {
        /// As the archive names it.
        path: PathBuf,
        /// What it would do.
        reason: &'static str,
    },
    /// This machine could not do its part.
    #[error("cannot write '{}': {error}", path.display())]
    Write {
        /// In the folder.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
}

/// Whether a file begins as an archive does that [`unpack`] reads.
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

/// Unpacks `archive` into `folder`, which is new. A venv's links to the interpreter it was created with
/// (`bin/python` to a path elsewhere) are left out: they are valid on the machine that packed it only.
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

/// What is done while an archive is unpacked.
pub trait Watch {
    /// Makes room, before anything of an entry is written, for the bytes that all come to with this one.
    ///
    /// # Errors
    /// When there is none: nothing more is written.
    fn make_room(&mut self, bytes: u64) -> io::Result<()>;

    /// Tells now and then how many bytes there are.
    fn show_progress(&mut self, bytes: u64);
}

/// Has room for all, and tells nothing.
impl Watch for () {
    fn make_room(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn show_progress(&mut self, _: u64) {}
}

/// The same of a packed archive that is read as it comes, from its first byte on.
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
    /// Of the archive's reader.
    allowance: Rc<Cell<u64>>,
    /// Created when all files are there: no file is ever written through a link.
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
            // What follows in the archive: the entry's own bytes and the headers of the next.
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

    /// How many folders an entry brings along that are not there yet.
    fn unnamed_folders(&self, entry: &Entry<'_, Source<'_>>) -> u64 {
        let Some(inside) = entry.path().ok().and_then(|path| inside(&path)) else { return 0 };
        let target = self.folder.join(inside);
        if target.as_os_str().len() > LONGEST_PATH {
            return 0;
        }
        target.ancestors().skip(1).take_while(|folder| !folder.exists()).map(|_| 1).sum()
    }

    /// Before anything of the entry is written.
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

/// The library has one error type for reading the archive and writing the file.
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

/// The path with `.` and `..` resolved, or `None` when it is absolute or leads out.
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

/// `bin/python`, `bin/python3.11` and the like.
fn is_interpreter(path: &Path) -> bool {
    let is_python = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"python"));
    is_python && path.parent().is_some_and(|parent| parent.ends_with("bin"))
}

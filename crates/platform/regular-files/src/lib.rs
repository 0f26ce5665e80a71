//! Reads files that an operator or a model names.
//!
//! A path may lead to a pipe that nobody writes to, to a folder or to an endless device. A thread that opened one would hang
//! for good, or fill the memory. These functions open only regular files, also through links, and read no more than a limit.
//! A file on a network file system that does not answer still blocks its reader: the kernel has no way to open it without
//! waiting.

#![warn(missing_docs)]

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read},
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

/// Opens a regular file for reading, through links.
///
/// # Errors
/// Those of the system: of kind `NotFound` if nothing is there, of kind `InvalidInput` for a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

/// Opens a regular file for reading and writing, not through a link.
///
/// # Errors
/// Those of [`open`], and those of a link.
pub fn open_for_writing(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    regular(file)
}

/// Opens the regular file of a descriptor for reading and writing. The new descriptor shares neither position nor flags with it.
///
/// # Errors
/// Those of [`open`], and those of a file that this process may not open.
pub fn open_again(descriptor: BorrowedFd<'_>) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let mut options = OpenOptions::new();
    regular(options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`]; of kind `FileTooLarge` if it is longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    // Reads one byte more than allowed, to notice a file that is too long.
    open(path)?.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 > most {
        true => Err(too_long(most)),
        false => Ok(content),
    }
}

/// Reads a regular file of at most `most` bytes of UTF-8.
///
/// # Errors
/// Those of [`read`]; of kind `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.take(most + 1).read_to_string(&mut text)?;
    match text.len() as u64 > most {
        true => Err(too_long(most)),
        false => Ok(text),
    }
}

/// Returns true if a file could not be opened because a link leads back to itself.
pub fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ELOOP)
}

fn too_long(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("the file is larger than {most} bytes"))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write as _,
        os::{
            fd::AsFd as _,
            unix::fs::{FileExt as _, symlink},
        },
        process::Command,
    };

    use super::*;

    #[test]
    fn a_regular_file_is_read_up_to_the_limit_and_through_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "four").expect("written");
        symlink(&file, &link).expect("a link");
        for path in [&file, &link] {
            assert_eq!(read(path, 4).expect("short enough"), b"four");
            assert_eq!(read_text(path, 4).expect("short enough"), "four");
            for error in [read(path, 3).map(drop), read_text(path, 3).map(drop)] {
                let error = error.expect_err("too long");
                assert_eq!(error.kind(), ErrorKind::FileTooLarge);
                assert_eq!(error.to_string(), "the file is larger than 3 bytes");
            }
        }
        let missing = read(&folder.path().join("none"), 1).expect_err("nothing there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_is_opened_again_has_flags_of_its_own() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let appending = File::options().append(true).open(file.path()).expect("there");
        (&appending).write_all(b"four").expect("written");
        let again = open_again(appending.as_fd()).expect("a regular file");
        again.write_all_at(b"F", 0).expect("written");
        assert_eq!(read(file.path(), 4).expect("short enough"), b"Four");
        let (pipe, _writer) = io::pipe().expect("a pipe");
        let error = open_again(pipe.as_fd()).expect_err("no file");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn pipes_folders_and_devices_block_nobody() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("started").success());
        for other in [&*pipe, folder.path(), Path::new("/dev/zero")] {
            let error = read(other, 1 << 20).expect_err("not a file");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), "not a regular file", "{}", other.display());
        }
    }
}

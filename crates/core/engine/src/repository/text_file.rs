//! Reads text files of a model as a whole, up to a limit.

use std::{io, path::Path};

/// The largest number of bytes of a text file of a model: a configuration, the labels of an output.
pub(crate) const MAX_TEXT_FILE: u64 = 16 << 20;

/// Reads a regular file of at most [`MAX_TEXT_FILE`] bytes. Anything else, such as a pipe without a writer, is an error at
/// once.
///
/// # Errors
/// The kind is `NotFound` if there is no such file.
pub(crate) fn read_text_file(path: &Path) -> io::Result<String> {
    galatea_regular_files::read_text(path, MAX_TEXT_FILE)
}

/// Returns the system's text of an error, without the number.
pub(crate) fn system_words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(&*text, |(text, _)| text).to_owned()
}

/// Returns advice on an existing text file that cannot be read; `None` if there is none.
pub(crate) fn advice(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some(LET_READ),
        io::ErrorKind::InvalidInput => Some("put a file there: it is a folder, a pipe or a device"),
        io::ErrorKind::FileTooLarge => Some("the server reads it whole: is it the right file?"),
        io::ErrorKind::InvalidData => Some("save it as text in UTF-8"),
        _ if galatea_regular_files::is_loop(error) => {
            Some("the link leads back to itself: put the file in its place")
        }
        _ => None,
    }
}

/// The advice on a file or folder that may not be read.
pub(super) const LET_READ: &str =
    "let the user that runs the server read it: chmod a+r for a file, a+rx for its folders";

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn regular_files_are_read_up_to_the_limit() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("text");
        fs::write(&path, "a\nb").expect("written");
        assert_eq!(read_text_file(&path).expect("text"), "a\nb");
        File::create(&path).expect("file").set_len(MAX_TEXT_FILE + 1).expect("sparse");
        let error = read_text_file(&path).expect_err("too large");
        assert_eq!(error.to_string(), "the file is larger than 16777216 bytes");
        let missing = read_text_file(&folder.path().join("none")).expect_err("none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_unreadable_file_is_reported_with_advice() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("text");
        std::os::unix::fs::symlink("text", &path).expect("link");
        let of = |path: &Path| advice(&read_text_file(path).expect_err("unreadable"));
        assert!(of(&path).is_some_and(|advice| advice.contains("leads back to itself")));
        assert!(of(folder.path()).is_some_and(|advice| advice.starts_with("put a file there")));
        fs::write(folder.path().join("bytes"), [0xff, 0xfe]).expect("written");
        assert_eq!(of(&folder.path().join("bytes")), Some("save it as text in UTF-8"));
        assert_eq!(of(&folder.path().join("none")), None);
    }
}

//! The agent `checksum`: compares files of the model with digests from their author. Each parameter names a file of the model
//! as `MD5:{path}`, and its value is the digest in hexadecimal.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs::File,
    io::{self, Read},
    path::Path,
};

use galatea_backend::relative_inside;
use galatea_types::{Error, Result};
use md5::{Digest, Md5};

use super::{AgentAnswer, AgentContext, RepositoryAgent};

/// The largest number of files of one model. Each is read as a whole.
const MAX_FILES: usize = 4096;
/// The number of bytes of a file in memory at a time.
const CHUNK: usize = 64 << 10;

/// The agent `checksum`. It replaces no folder and follows no load.
#[derive(Debug)]
pub(super) struct ChecksumAgent;

impl RepositoryAgent for ChecksumAgent {
    fn on_load(&self, model: &AgentContext<'_>) -> Result<AgentAnswer> {
        check(model.parameters, model.folder)?;
        Ok(AgentAnswer::default())
    }
}

/// Compares every file with its digest. The errors have Triton's texts where Triton refuses too.
fn check(parameters: &BTreeMap<String, String>, model_dir: &Path) -> Result<()> {
    let count = parameters.len();
    if count > MAX_FILES {
        let text = format!("{count} files in the agent 'checksum', the limit is {MAX_FILES}");
        return Err(Error::invalid_arg(text));
    }
    parameters.iter().try_for_each(|(key, expected)| check_file(key, expected, model_dir))
}

fn check_file(key: &str, expected: &str, model_dir: &Path) -> Result<()> {
    let (algorithm, path) = key
        .split_once(':')
        .ok_or_else(|| Error::invalid_arg(format!("failed to parse key: {key}")))?;
    if !algorithm.eq_ignore_ascii_case("md5") {
        return Err(Error::unsupported(format!("Unsupported checksum algorithm: {algorithm}")));
    }
    let inside = relative_inside(path).ok_or_else(|| {
        Error::invalid_arg(format!(
            "the file '{path}' of the agent 'checksum' must be a relative path that stays inside of the model's folder"
        ))
    })?;
    let digest = galatea_regular_files::open(&model_dir.join(inside)).and_then(digest);
    let found = digest.map_err(|source| {
        let text = format!("failed to open text file for read {path}: {source}");
        Error::invalid_arg(text).with_source(source)
    })?;
    match found == expected {
        true => Ok(()),
        false => Err(Error::invalid_arg(format!(
            "Mismatched MD5 hash for file {path}, expect: {expected}, got: {found}"
        ))),
    }
}

fn digest(mut file: File) -> io::Result<String> {
    let mut digest = Md5::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            count => digest.update(chunk.get(..count).unwrap_or_default()),
        }
    }
    let mut text = String::new();
    for byte in digest.finalize() {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    /// Of a folder with the file `1/model.py`, which holds `abc`.
    fn checked(parameters: &[(&str, &str)]) -> std::result::Result<(), String> {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("1")).expect("folder");
        fs::write(folder.path().join("1/model.py"), "abc").expect("file");
        fs::write(folder.path().join("empty"), "").expect("file");
        fs::write(folder.path().join("large"), vec![b'a'; 1_000_000]).expect("file");
        let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        assert!(made.expect("started").success());
        let parameters = parameters.iter().map(|&(k, v)| (k.to_owned(), v.to_owned()));
        check(&parameters.collect(), folder.path()).map_err(|error| error.to_string())
    }

    const ABC: &str = "900150983cd24fb0d6963f7d28e17f72";

    #[test]
    fn files_with_the_right_checksum_pass() {
        assert_eq!(checked(&[]), Ok(()));
        for key in ["MD5:1/model.py", "md5:1/model.py", "Md5:./1/../1/model.py"] {
            assert_eq!(checked(&[(key, ABC)]), Ok(()), "{key}");
        }
        assert_eq!(checked(&[("MD5:empty", "d41d8cd98f00b204e9800998ecf8427e")]), Ok(()));
        assert_eq!(checked(&[("MD5:large", "7707d6ae4e027c70eea2a935c2296f21")]), Ok(()));
    }

    #[test]
    fn files_with_another_checksum_are_refused() {
        let wrong = "0".repeat(32);
        let mismatch = |expected: &str| {
            Err(format!("Mismatched MD5 hash for file 1/model.py, expect: {expected}, got: {ABC}"))
        };
        assert_eq!(checked(&[("MD5:1/model.py", &wrong)]), mismatch(&wrong));
        assert_eq!(checked(&[("MD5:1/model.py", "")]), mismatch(""));
        assert_eq!(
            checked(&[("MD5:empty", "d41d8cd98f00b204e9800998ecf8427e"), ("md5:1/model.py", "x")]),
            mismatch("x")
        );
        for (key, text) in [
            ("1/model.py", "failed to parse key: 1/model.py"),
            ("SHA1:1/model.py", "Unsupported checksum algorithm: SHA1"),
            ("MD5:pipe", "failed to open text file for read pipe: not a regular file"),
            ("MD5:1", "failed to open text file for read 1: not a regular file"),
        ] {
            assert_eq!(checked(&[(key, ABC)]), Err(text.to_owned()));
        }
        let missing = checked(&[("MD5:none", ABC)]).expect_err("no file");
        assert!(
            missing.starts_with("failed to open text file for read none: No such"),
            "{missing}"
        );
    }

    /// The digest would reveal the content of the file.
    #[test]
    fn files_outside_the_model_are_not_read() {
        for path in ["/etc/passwd", "../m2/1/model.py", "1/../../x", "", "."] {
            let error = checked(&[(&format!("MD5:{path}"), ABC)]).expect_err(path);
            assert!(error.ends_with("stays inside of the model's folder"), "{error}");
        }
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let parameters: BTreeMap<_, _> =
            (0..=MAX_FILES).map(|i| (format!("MD5:{i}"), ABC.to_owned())).collect();
        let error = check(&parameters, Path::new("/")).expect_err("too many");
        assert_eq!(error.to_string(), "4097 files in the agent 'checksum', the limit is 4096");
    }
}

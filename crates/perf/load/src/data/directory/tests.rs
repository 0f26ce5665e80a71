//! Folders with one file per input.

use std::path::PathBuf;

use galatea_types::DataType::{self, *};
use tempfile::TempDir;

use super::{super::tests::model, *};

fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, content)| {
        fs::write(directory.path().join(name), content).unwrap();
    });
    directory
}

fn read(tensors: &[(DataType, &[i64])], files: &[(&str, &[u8])]) -> Result<Vec<u8>, String> {
    let directory = directory(files);
    let name =
        |error: DirectoryError| error.to_string().replace(directory.path().to_str().unwrap(), "D");
    let step = read_directory(&model(tensors), directory.path()).map_err(name)?;
    assert!(step.expected.is_empty());
    Ok(step.inputs[0].as_ref().expect("data").data.to_vec())
}

#[test]
fn numbers_are_raw_and_strings_are_lines() {
    let numbers: &[(DataType, &[i64])] = &[(Int16, &[2])];
    assert_eq!(
        read(numbers, &[("INPUT0", b"\x01\0\x02\0"), ("OUTPUT0", b"x")]).unwrap(),
        [1, 0, 2, 0]
    );
    let strings: &[(DataType, &[i64])] = &[(Bytes, &[2])];
    for text in [&b"a\nbc"[..], b"a\nbc\n"] {
        assert_eq!(read(strings, &[("INPUT0", text)]).unwrap(), b"\x01\0\0\0a\x02\0\0\0bc");
    }
}

#[test]
fn directory_errors_equal_perf_analyzers() {
    let numbers: &[(DataType, &[i64])] = &[(Int16, &[2])];
    let strings: &[(DataType, &[i64])] = &[(Bytes, &[2])];
    let open: &[(DataType, &[i64])] = &[(Int16, &[-1])];
    for (tensors, files, text) in [
        (
            numbers,
            &[("X", &b"x"[..])][..],
            "Provided data file 'X' does not correspond to a valid model input or output.",
        ),
        (numbers, &[], "failed to open file 'D/INPUT0'"),
        (numbers, &[("INPUT0", b"")], "file 'D/INPUT0' is empty"),
        (numbers, &[("INPUT0", b"x")], "provided data for input INPUT0 has byte size 1, expect 4"),
        (
            strings,
            &[("INPUT0", b"a\nb\n\n")],
            "provided data for input INPUT0 has 3 elements, expect 2",
        ),
        (
            open,
            &[("INPUT0", b"ab")],
            "input INPUT0 contains dynamic shape, provide shapes to send along with the request",
        ),
    ] {
        assert_eq!(read(tensors, files).expect_err(text), text);
    }
}

#[test]
fn a_missing_directory_is_an_error() {
    let missing = PathBuf::from("/does/not/exist");
    let error = read_directory(&model(&[(Int16, &[2])]), &missing).expect_err("no directory");
    assert!(error.to_string().starts_with("failed to read '/does/not/exist'"), "{error}");
}

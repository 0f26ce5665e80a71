//! Archives, sound and damaged.

use std::{fs::File, io::Write};

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

fn package(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("model.pt2");
    let mut archive = ZipWriter::new(File::create(&path).expect("created"));
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).expect("started");
        archive.write_all(content.as_bytes()).expect("written");
    }
    archive.finish().expect("finished");
    (folder, path)
}

fn unpack(files: &[(&str, &str)]) -> Result<Package, String> {
    let (_folder, path) = package(files);
    Package::unpack(&path)
}

#[track_caller]
fn error(files: &[(&str, &str)]) -> String {
    unpack(files).err().expect("an error").to_string()
}

fn names_in(package: &Package) -> Vec<String> {
    let entries = fs::read_dir(package.folder.path()).expect("readable").flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn code_and_its_dependencies_are_unpacked_for_this_user_only() {
    let notes = r#"{"AOTI_DEVICE_KEY": "cuda"}"#;
    let files = [
        ("m/data/aotinductor/model/a.wrapper.so", "code"),
        ("m/data/aotinductor/model/b.so", "kernel"),
        ("m/data/aotinductor/model/a.wrapper.cpp", "source"),
        ("m/data/aotinductor/model/k.cubin", "kernel"),
        ("m/data/aotinductor/model/a.wrapper_metadata.json", notes),
        ("m/data/aotinductor/model/b_metadata.json", "{}"),
        ("m/archive_version", "0"),
    ];
    let package = unpack(&files).expect("unpacks");
    assert_eq!(names_in(&package), ["a.wrapper.so", "b.so", "k.cubin"]);
    assert_eq!(package.library, package.folder.path().join("a.wrapper.so"));
    assert_eq!(package.source, "source");
    assert_eq!(package.metadata["AOTI_DEVICE_KEY"], "cuda");
    let metadata = fs::metadata(package.folder.path()).expect("there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
}

#[test]
fn older_archive_layouts_are_read() {
    let package = unpack(&[("data/aotinductor/tagger/a.so", "code")]).expect("unpacks");
    assert_eq!(names_in(&package), ["a.so"]);
    let two = [("data/aotinductor/a/a.so", ""), ("data/aotinductor/model/b.so", "")];
    assert_eq!(names_in(&unpack(&two).expect("unpacks")), ["b.so"]);
    let two = [("data/aotinductor/a/a.so", ""), ("data/aotinductor/b/b.so", "")];
    assert_eq!(error(&two), "it holds several models (a, b), and none is called 'model'");
}

/// The same archive as PyTorch writes it: with the records of ZIP64 between the directory and its end.
fn with_zip64_records(path: &Path) {
    let mut bytes = fs::read(path).expect("readable");
    let end = bytes.split_off(bytes.len() - 22);
    let number = |at: usize| u32::from_le_bytes(end[at..at + 4].try_into().expect("four bytes"));
    let count = u64::from(u16::from_le_bytes([end[10], end[11]]));
    let (size, start, here) = (number(12), number(16), bytes.len() as u64);
    bytes.extend(b"PK\x06\x06");
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for value in [count, count, u64::from(size), u64::from(start)] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(here.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(end);
    fs::write(path, bytes).expect("written");
}

#[test]
fn pytorch_archives_with_any_names_are_read() {
    for length in 1..100 {
        let first = format!("{}/archive_format", "m".repeat(length));
        let (_folder, path) = package(&[(&first, "pt2"), ("m/models/model.json", "{}")]);
        with_zip64_records(&path);
        let error = Package::unpack(&path).err().expect("an error").to_string();
        assert!(error.starts_with("it holds no compiled code"), "{first}: {error}");
        let library = "m/data/aotinductor/model/a.so";
        let (_folder, path) = package(&[(&first, "pt2"), (library, "code")]);
        with_zip64_records(&path);
        assert!(Package::unpack(&path).is_ok(), "{first}");
    }
}

#[test]
fn archive_names_cannot_escape_the_folder() {
    for name in
        ["../x.so", "model/../../x.so", "model/..", "model/a/b.so", "model/a\\b.so", "model/"]
    {
        let text = error(&[(&format!("m/data/aotinductor/{name}"), "code")]);
        assert!(text.starts_with("it holds no compiled code"), "{name}: {text}");
    }
    let text = error(&[("../../data/aotinductor/model/x.so", "code")]);
    assert!(text.starts_with("it holds no compiled code"), "{text}");
}

#[test]
fn files_that_are_not_packages_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("model.pt2");
    for content in ["", "PK\u{3}\u{4}", "not a zip"] {
        fs::write(&path, content).expect("written");
        let error = Package::unpack(&path).err().expect("an error").to_string();
        assert!(error.starts_with("it is not a package"), "{error}");
    }
    let exported = error(&[("m/models/model.json", "{}")]);
    assert!(exported.contains("aoti_compile_and_package makes a package"), "{exported}");
    let sources = error(&[("m/data/aotinductor/model/a.wrapper.cpp", "")]);
    assert!(sources.contains("package_cpp_only"), "{sources}");
    let code = ("m/data/aotinductor/model/a.wrapper.so", "");
    for weights in [
        "m/data/aotinductor/model/a.wrapper_weights.blob",
        "m/data/weights/model_weights_config.json",
    ] {
        let text = error(&[code, (weights, "")]);
        assert!(text.starts_with("its weights lie outside"), "{text}");
    }
}

#[test]
fn operators_without_a_stable_function_are_named() {
    let code = ("m/data/aotinductor/model/a.wrapper.so", "");
    let with = |nodes: &str| {
        unpack(&[code, ("m/data/aotinductor/model/a.wrapper.json", nodes)])
            .map(drop)
            .map_err(|e| e.to_string())
    };
    assert_eq!(with(r#"{"nodes": []}"#), Ok(()));
    let nodes = r#"{"nodes": [{"name": "b", "node": {"target": "my::op", "inputs": []}}]}"#;
    assert!(with(nodes).expect_err("foreign").contains("(my::op)"));
    assert!(with("{}").expect_err("unknown").contains("unknown form"));
}

/// The members are zeros, which deflate shrinks a thousandfold.
#[test]
fn packages_that_inflate_beyond_their_size_are_refused() {
    let zeroes = "\0".repeat((MAX_TEXT_BYTES + 1) as usize);
    let code = ("m/data/aotinductor/model/a.wrapper.so", "code");
    for notes in ["a.wrapper_metadata.json", "a.wrapper.cpp", "a.wrapper.json"] {
        let name = format!("m/data/aotinductor/model/{notes}");
        let text = error(&[code, (&name, &zeroes)]);
        assert_eq!(text, format!("'{name}' in it has more than 67108864 bytes"));
    }
    let text = error(&[code, ("m/data/aotinductor/model/k.cubin", &zeroes.repeat(2))]);
    assert!(text.starts_with("it unpacks to more than "), "{text}");
    // As much as a package of this size may have.
    let text = zeroes.split_at(1 << 20).0;
    unpack(&[code, ("m/data/aotinductor/model/k.cubin", text)]).expect("unpacks");
}

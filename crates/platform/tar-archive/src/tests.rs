//! Archives, harmless and hostile, are unpacked or refused.

use std::os::unix::fs::PermissionsExt;

use flate2::{Compression, write::GzEncoder};
use tar::{Builder, Header};

use super::*;

const BOUNDS: Bounds = Bounds { bytes: 1 << 20, files: 100 };

struct TestArchive {
    folder: tempfile::TempDir,
    builder: Builder<Vec<u8>>,
}

impl TestArchive {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        Self { folder, builder: Builder::new(Vec::new()) }
    }

    /// Writes the name into the header: the library itself refuses such names.
    fn add(mut self, name: &str, kind: EntryType, content: &str) -> Self {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o755);
        let data = if kind.is_file() { content } else { "" };
        if !kind.is_file() {
            header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content.as_bytes());
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        self.builder.append(&header, data.as_bytes()).expect("appended");
        self
    }

    fn file(self, name: &str, content: &str) -> Self {
        self.add(name, EntryType::Regular, content)
    }

    fn symlink(self, name: &str, target: &str) -> Self {
        self.add(name, EntryType::Symlink, target)
    }

    fn unpack(self) -> (tempfile::TempDir, Result<(), UnpackError>) {
        let archive = self.folder.path().join("a.tar.gz");
        let file = File::create(&archive).expect("created");
        let mut encoder = GzEncoder::new(file, Compression::fast());
        let bytes = self.builder.into_inner().expect("finished");
        io::copy(&mut bytes.as_slice(), &mut encoder).expect("written");
        encoder.finish().expect("finished");
        let result = unpack(&archive, &self.folder.path().join("out"), BOUNDS, &mut ());
        (self.folder, result)
    }

    #[track_caller]
    fn refused(self, expected: &str) {
        let (folder, result) = self.unpack();
        let message = result.expect_err("refused").to_string();
        assert!(message.contains(expected), "{message}");
        let names = fs::read_dir(folder.path()).expect("read").flatten();
        let mut names: Vec<_> = names.map(|e| e.file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.tar.gz", "out"], "nothing beside the folder");
    }
}

#[test]
fn files_folders_and_inner_links_are_unpacked() {
    let (folder, result) = TestArchive::new()
        .symlink("lib64", "lib")
        .add("lib/", EntryType::Directory, "")
        .file("lib/a.txt", "text")
        .file("./bin/tool", "#!")
        .symlink("bin/other", "../lib/a.txt")
        .add("lib/same.txt", EntryType::Link, "lib/a.txt")
        .symlink("lib/later", "not-there-yet")
        .unpack();
    result.expect("unpacked");
    let read = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).ok();
    for name in ["lib/a.txt", "lib64/a.txt", "bin/other", "lib/same.txt"] {
        assert_eq!(read(name).as_deref(), Some("text"), "{name}");
    }
    let tool = fs::metadata(folder.path().join("out/bin/tool")).expect("there");
    assert_ne!(tool.permissions().mode() & 0o111, 0, "a program stays one");
}

#[test]
fn entries_cannot_leave_the_folder() {
    TestArchive::new().file("../evil", "x").refused("'../evil' would be written outside");
    TestArchive::new().file("a/../../evil", "x").refused("would be written outside");
    TestArchive::new().file("/tmp/evil", "x").refused("would be written outside");
    TestArchive::new().symlink("out", "/etc").refused("'out' is a link that leads outside");
    TestArchive::new().symlink("a/out", "../../x").refused("is a link that leads outside");
    TestArchive::new().add("h", EntryType::Link, "../a.tar.gz").refused("leads outside");
    TestArchive::new().add("h", EntryType::Link, "/etc/passwd").refused("leads outside");
    TestArchive::new().add("d", EntryType::Char, "").refused("neither a file");
    TestArchive::new().add("d", EntryType::Fifo, "").refused("neither a file");
}

#[test]
fn links_through_links_cannot_leave_the_folder() {
    // `b` looks as if it were inside: `a` is the folder itself.
    TestArchive::new().symlink("a", ".").symlink("b", "a/..").refused("'b' is a link that leads");
    TestArchive::new().symlink("a", "lib").file("lib/x", "").symlink("a/y", "x").refused("behind");
    // A file behind a link becomes a file in a folder, and the link has no place any more.
    TestArchive::new().symlink("a", "..").file("a/evil", "x").refused("");
}

#[test]
fn the_interpreter_of_a_venv_is_skipped() {
    let (folder, result) = TestArchive::new()
        .symlink("bin/python", "/usr/bin/python3")
        .symlink("bin/python3", "python")
        .symlink("bin/python3.11", "../../elsewhere/python")
        .unpack();
    result.expect("unpacked");
    let out = folder.path().join("out/bin");
    assert!(fs::symlink_metadata(out.join("python")).is_err());
    assert!(fs::symlink_metadata(out.join("python3.11")).is_err());
    assert!(fs::symlink_metadata(out.join("python3")).is_ok());
}

#[test]
fn other_files_and_truncated_archives_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("x.tar.gz");
    let out = folder.path().join("out");
    fs::write(&path, "PK\u{3}\u{4}").expect("written");
    assert!(!is_archive(&path));
    let error = unpack(&path, &out, BOUNDS, &mut ()).expect_err("wrong");
    assert!(matches!(error, UnpackError::Kind));
    fs::write(&path, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1]).expect("written");
    let error = unpack(&path, &out, BOUNDS, &mut ()).expect_err("damaged");
    assert!(matches!(error, UnpackError::Read(_)), "{error}");
}

/// A few kilobytes of archive hold megabytes of zeros, in many files and in one.
#[test]
fn an_archive_bomb_is_refused_before_it_is_written() {
    let zeros = "\0".repeat(300 << 10);
    let many = (0..4).fold(TestArchive::new(), |archive, i| archive.file(&format!("{i}"), &zeros));
    let (folder, result) = many.unpack();
    let message = result.expect_err("refused").to_string();
    assert!(message.contains("more than 1048576 bytes"), "{message}");
    assert!(!folder.path().join("out/3").exists(), "it is checked before it is written");

    let mut archive = TestArchive::new();
    let mut header = Header::new_gnu();
    header.set_path("bomb").expect("a name");
    header.set_size(1 << 40);
    header.set_cksum();
    archive.builder.append(&header, io::empty()).expect("appended");
    archive.refused("more than 1048576 bytes");
}

#[test]
fn too_many_files_are_refused() {
    let many = |n| {
        (0..n).fold(TestArchive::new(), |a, i| a.add(&format!("d{i}"), EntryType::Directory, ""))
    };
    many(100).unpack().1.expect("as many as it may have");
    let message = many(101).unpack().1.expect_err("refused").to_string();
    assert!(message.contains("more than 100 files"), "{message}");
}

#[test]
fn implicit_folders_count_against_the_limit() {
    // Each brings 25.
    let deep = |n: usize| {
        (0..n).fold(TestArchive::new(), |archive, i| {
            archive.add(&format!("{i}/{}", "d/".repeat(24)), EntryType::Directory, "")
        })
    };
    deep(4).unpack().1.expect("as many as it may have");
    let message = deep(5).unpack().1.expect_err("refused").to_string();
    assert!(message.contains("more than 100 files"), "{message}");
}

/// A sparse file with a terabyte of holes takes no space but counts against the limit.
#[test]
fn sparse_holes_count_against_the_limit() {
    let mut archive = TestArchive::new();
    let mut header = Header::new_gnu();
    header.set_path("sparse").expect("a name");
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(0);
    let gnu = header.as_gnu_mut().expect("gnu");
    // One chunk without a byte, at the very end.
    for field in [&mut gnu.realsize, &mut gnu.sparse[0].offset] {
        field.copy_from_slice(b"77777777777\0");
    }
    gnu.sparse[0].numbytes.copy_from_slice(b"00000000000\0");
    header.set_cksum();
    archive.builder.append(&header, io::empty()).expect("appended");
    archive.refused("more than 1048576 bytes");
}

/// The library reads a long name into memory before it returns the entry.
#[test]
fn a_name_of_many_megabytes_is_not_read() {
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let mut archive = TestArchive::new();
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(64 << 20);
        header.set_cksum();
        let name = vec![b'a'; 64 << 20];
        archive.builder.append(&header, &name[..]).expect("appended");
        archive.file("x", "").refused("headers or links that are too long");
    }
}

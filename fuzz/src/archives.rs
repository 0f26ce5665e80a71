//! Archives: packed Python environments, compiled packages of PyTorch, and the libraries in them; files of ONNX models.

use std::{
    fs,
    io::{Cursor, Write},
    path::Path,
};

use arbitrary::{Arbitrary, Unstructured};
use tar::{EntryType, Header};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use crate::{
    edits::{self, Edit},
    memory::{Bound, bounded},
};

/// A reader has a buffer, and one for what it inflates.
const BOUND: Bound = Bound { per_byte: 64, base: 1 << 20 };

/// What an environment may unpack to here.
const MOST_BYTES: u64 = 100_000;
const MOST_FILES: u64 = 16;

#[derive(Arbitrary, Debug)]
struct Archive {
    files: Vec<File>,
    edits: Vec<Edit>,
    is_packed: bool,
}

#[derive(Arbitrary, Debug)]
struct File {
    path: Vec<Part>,
    kind: Kind,
    target: Vec<Part>,
    content: Vec<u8>,
    zeros: u16,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Kind {
    File,
    Folder,
    HardLink,
    Link,
    Other(u8),
}

#[derive(Arbitrary, Debug)]
enum Part {
    Up,
    Here,
    Root,
    A,
    B,
    Bin,
    Python,
    Data,
    Compiled,
    Library,
    Metadata,
    Text(String),
}

/// An environment's archive is unpacked into its folder or refused; nothing lies, and no link leads, outside.
pub fn tar(data: &[u8]) {
    let Ok(archive) = Unstructured::new(data).arbitrary::<Archive>() else { return };
    let mut bytes = archive.tar();
    edits::apply(&mut bytes, &archive.edits);
    let outer = tempfile::tempdir().expect("folder");
    let (file, folder) = (outer.path().join("archive"), outer.path().join("inner"));
    fs::write(&file, &bytes).expect("written");
    let unpacked = bounded(bytes.len(), BOUND, || {
        let bounds = galatea_tar_archive::Bounds { bytes: MOST_BYTES, files: MOST_FILES };
        galatea_tar_archive::unpack(&file, &folder, bounds, &mut ())
    });
    assert_eq!(fs::read(&file).expect("still there"), bytes);
    for entry in fs::read_dir(outer.path()).expect("readable") {
        let path = entry.expect("readable").path();
        assert!(path == file || path == folder, "{} was written", path.display());
    }
    if unpacked.is_ok() {
        let (mut files, mut length) = (0, 0);
        let root = folder.canonicalize().expect("there");
        assert_inside(&folder, &root, &mut files, &mut length);
        assert!(files <= MOST_FILES && length <= MOST_BYTES, "{files} files of {length} bytes");
    }
}

/// No link below `folder` leads out of `root`. Counts what is there.
fn assert_inside(folder: &Path, root: &Path, files: &mut u64, length: &mut u64) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let real = path.canonicalize().unwrap_or_else(|_| root.to_owned());
        assert!(real.starts_with(root), "{} leads to {}", path.display(), real.display());
        let metadata = fs::symlink_metadata(&path).expect("there");
        *files += 1;
        if metadata.is_dir() {
            assert_inside(&path, root, files, length);
        } else if metadata.is_file() {
            *length += metadata.len();
        }
    }
}

/// A package is read or refused.
pub fn pt2(data: &[u8]) {
    let Ok(archive) = Unstructured::new(data).arbitrary::<Archive>() else { return };
    let mut bytes = archive.zip();
    edits::apply(&mut bytes, &archive.edits);
    with_file(&bytes, |file| {
        let _ = bounded(bytes.len(), BOUND, || galatea_backend_torch::read_package(file));
    });
}

/// Any bytes as a compiled library: it stays as long as it is.
pub fn elf(data: &[u8]) {
    with_file(data, |file| {
        let bound = Bound { per_byte: 4, base: 64 << 10 };
        let _ = bounded(data.len(), bound, || galatea_backend_torch::make_unloadable(file));
        assert_eq!(fs::metadata(file).expect("there").len(), data.len() as u64);
    });
}

/// Any bytes as a library that was made for Triton: what it needs and calls is read, or it is refused.
pub fn triton_library(data: &[u8]) {
    let bound = Bound { per_byte: 64, base: 256 << 10 };
    let _ = bounded(data.len(), bound, || galatea_triton_c::LibraryFile::parse(data));
}

/// Any bytes as the file of an ONNX model: its declarations are read or it is refused.
pub fn onnx_header(data: &[u8]) {
    let bound = Bound { per_byte: 256, base: 256 << 10 };
    let _ = bounded(data.len(), bound, || galatea_backend_onnx::read_header(data));
}

/// What an IR file of OpenVINO says of its inputs: what is kept is names and numbers that stand in it.
pub fn openvino_header(data: &[u8]) {
    let bound = Bound { per_byte: 256, base: 256 << 10 };
    let _ = bounded(data.len(), bound, || galatea_backend_openvino::read_header(data));
}

/// Any bytes as the file of a TensorFlow model, a SavedModel's or a graph's: what it declares is read or it is refused.
pub fn saved_model(data: &[u8]) {
    let bound = Bound { per_byte: 512, base: 256 << 10 };
    let _ = bounded(data.len(), bound, || galatea_backend_tensorflow::read_saved_model(data));
}

/// Any text as a model's list of what it takes and returns.
pub fn call_spec(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    bounded(text.len(), BOUND, || galatea_backend_torch::read_call_spec(text));
}

fn with_file(bytes: &[u8], read: impl FnOnce(&Path)) {
    let file = tempfile::NamedTempFile::new().expect("file");
    fs::write(&file, bytes).expect("written");
    read(file.path());
}

impl Archive {
    fn tar(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.files.iter().for_each(|file| file.append_to_tar(&mut bytes));
        bytes.extend([0; 1024]);
        if self.is_packed { gzip(&bytes) } else { bytes }
    }

    fn zip(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let method =
            if self.is_packed { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let options = SimpleFileOptions::default().compression_method(method);
        for file in &self.files {
            // The library refuses two files of one name.
            if zip.start_file(path(&file.path), options).is_ok() {
                zip.write_all(&file.bytes()).expect("into memory");
            }
        }
        zip.finish().expect("into memory").into_inner()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("into memory");
    encoder.finish().expect("into memory")
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        [&self.content[..], &vec![0; usize::from(self.zeros)]].concat()
    }

    /// The library's own writer refuses what is to be tested.
    fn append_to_tar(&self, bytes: &mut Vec<u8>) {
        let content = self.bytes();
        let mut header = Header::new_ustar();
        let (kind, content) = match self.kind {
            Kind::File => (EntryType::Regular, &content[..]),
            Kind::Folder => (EntryType::Directory, &[][..]),
            Kind::HardLink => (EntryType::Link, &[][..]),
            Kind::Link => (EntryType::Symlink, &[][..]),
            Kind::Other(kind) => (EntryType::new(kind), &content[..]),
        };
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        let fields = header.as_old_mut();
        copy(path(&self.path).as_bytes(), &mut fields.name);
        copy(path(&self.target).as_bytes(), &mut fields.linkname);
        header.set_cksum();
        bytes.extend(header.as_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
}

fn copy(from: &[u8], to: &mut [u8]) {
    let length = from.len().min(to.len());
    to[..length].copy_from_slice(&from[..length]);
}

fn path(parts: &[Part]) -> String {
    let parts: Vec<&str> = parts.iter().map(Part::text).collect();
    parts.join("/")
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Self::Up => "..",
            Self::Here => ".",
            Self::Root => "",
            Self::A => "a",
            Self::B => "b",
            Self::Bin => "bin",
            Self::Python => "python3",
            Self::Data => "data",
            Self::Compiled => "aotinductor/model",
            Self::Library => "m.wrapper.so",
            Self::Metadata => "m.wrapper_metadata.json",
            Self::Text(text) => text,
        }
    }
}

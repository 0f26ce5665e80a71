//! What the first bytes of a model's file say about it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::{files::shown, mistake::Mistake};
use crate::repository::{open_regular, read_text_file};

/// What is looked at.
const LOOKED_AT: u64 = 1024;

const LFS: &[u8] = b"version https://git-lfs";
const ZIP: &[u8] = b"PK\x03\x04";
const PICKLE: [&[u8]; 4] = [b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"];
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const GZIP: &[u8] = b"\x1f\x8b";
const FROM_TORCH: &str =
    "export the model with torch.onnx.export, or name it model.pt with backend: \"pytorch\"";
const AS_SCRIPT: &str =
    "save it with torch.jit.script or torch.jit.trace and save(): weights alone are no model";

/// Why the file of a model for a backend cannot be one. `None`: nothing speaks against it.
pub(super) fn mistake(path: &Path, backend: &str) -> Option<Mistake> {
    let start = match read_start(path) {
        Ok(start) => start,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Some(Mistake::NoFile),
        Err(error) => return Some(Mistake::Unreadable { reason: shown(&reason(&error)) }),
    };
    if start.is_empty() {
        return Some(Mistake::EmptyFile);
    }
    if start.starts_with(LFS) {
        return Some(Mistake::LfsPointer);
    }
    if is_web_page(&start) {
        return Some(Mistake::WebPage);
    }
    match backend {
        "onnxruntime" => no_onnx(&start),
        "pytorch" => no_torch(&start),
        "python" => no_python(path),
        _ => None,
    }
}

/// As the system says it, without the number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(&*text, |(text, _)| text).to_owned()
}

fn read_start(path: &Path) -> io::Result<Vec<u8>> {
    let file: File = open_regular(path)?;
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    Ok(start)
}

fn is_web_page(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html", b"<?xml"]
        .iter()
        .any(|tag| text.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag)))
}

fn no_onnx(start: &[u8]) -> Option<Mistake> {
    let wanted = "an ONNX model";
    let other = |what, advice| Some(Mistake::OtherContent { what, wanted, advice });
    match start {
        _ if start.starts_with(ZIP) => other("a zip archive, as torch.save writes", FROM_TORCH),
        _ if is_pickle(start) => other(
            "a pickled Python object",
            "export the model to ONNX, with torch.onnx.export or skl2onnx for example",
        ),
        _ if start.starts_with(HDF5) => {
            other("a Keras model (HDF5)", "export the model to ONNX with tf2onnx")
        }
        _ if start.starts_with(GZIP) => other("compressed", "unpack it first (gunzip)"),
        _ => None,
    }
}

fn no_torch(start: &[u8]) -> Option<Mistake> {
    let wanted = "a TorchScript model";
    let other = |what, advice| Some(Mistake::OtherContent { what, wanted, advice });
    match start {
        _ if start.starts_with(ZIP) => None,
        _ if is_pickle(start) => other("a pickled Python object", AS_SCRIPT),
        _ if start.starts_with(GZIP) => other("compressed", "unpack it first (gunzip)"),
        _ => None,
    }
}

fn is_pickle(start: &[u8]) -> bool {
    PICKLE.iter().any(|magic| start.starts_with(magic))
}

/// Only where the code cannot have the class from anywhere.
fn no_python(path: &Path) -> Option<Mistake> {
    let code = read_text_file(path).ok()?;
    let may_have = code.contains("TritonPythonModel") || code.contains("import *");
    (!may_have).then_some(Mistake::NoPythonClass)
}

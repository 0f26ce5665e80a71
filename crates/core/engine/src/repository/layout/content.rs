//! Checks the first bytes of a model's file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use galatea_config::{Place, Position};
use galatea_types::suggest;

use super::{
    files::{read_start, shown},
    mistake::LayoutMistake,
};
use crate::repository::{read_text_file, system_words};

const LFS: &[u8] = b"version https://git-lfs";
const ZIP: &[u8] = b"PK\x03\x04";
const END_OF_ZIP: &[u8] = b"PK\x05\x06";
/// The number of bytes of the record and of the longest comment.
const END_OF_ZIP_AND_COMMENT: u64 = 22 + 65_535;
const PICKLE: [&[u8]; 4] = [b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"];
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const GZIP: &[u8] = b"\x1f\x8b";
/// Follows the first four bytes of a model in the format ORT.
const ORT: &[u8] = b"ORTM";
const FROM_TORCH: &str =
    "export the model with torch.onnx.export, or name it model.pt with backend: \"pytorch\"";
const AS_SCRIPT: &str =
    "save it with torch.jit.script or torch.jit.trace and save(): weights alone are not a model";

/// The reason why a file cannot be the model's.
#[derive(Debug)]
pub(super) struct ForeignContent {
    pub mistake: LayoutMistake,
    /// The place in the file's text, without the name of the file.
    pub place: Option<Place>,
}

impl From<LayoutMistake> for ForeignContent {
    fn from(mistake: LayoutMistake) -> Self {
        Self { mistake, place: None }
    }
}

/// Returns why the file of a model for a backend cannot be one; `None` if nothing contradicts it.
pub(super) fn mistake(path: &Path, backend: &str) -> Option<ForeignContent> {
    let start = match read_start(path) {
        Ok(start) => start,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Some(LayoutMistake::NoFile.into());
        }
        Err(error) => {
            return Some(LayoutMistake::Unreadable { reason: shown(&system_words(&error)) }.into());
        }
    };
    let by_start = match backend {
        _ if start.is_empty() => Some(LayoutMistake::EmptyFile),
        _ if start.starts_with(LFS) => Some(LayoutMistake::LfsPointer),
        _ if is_web_page(&start) => Some(LayoutMistake::WebPage),
        "onnxruntime" => no_onnx(path, &start),
        "pytorch" => no_torch(path, &start),
        _ => None,
    };
    match by_start {
        None if backend == "python" => no_python(path),
        found => found.map(ForeignContent::from),
    }
}

fn is_web_page(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html", b"<?xml"]
        .iter()
        .any(|tag| text.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag)))
}

fn no_onnx(path: &Path, start: &[u8]) -> Option<LayoutMistake> {
    let wanted = "an ONNX model";
    let other = |what, advice| Some(LayoutMistake::OtherContent { what, wanted, advice });
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
        _ if start.get(4..8) == Some(ORT)
            && path.extension().is_none_or(|ending| ending != "ort") =>
        {
            other(
                "a model in ONNX Runtime's own format (ORT)",
                "give it a name that ends in .ort, and set default_model_filename to that name in config.pbtxt",
            )
        }
        _ => None,
    }
}

fn no_torch(path: &Path, start: &[u8]) -> Option<LayoutMistake> {
    let wanted = "a TorchScript model";
    let other = |what, advice| Some(LayoutMistake::OtherContent { what, wanted, advice });
    match start {
        _ if start.starts_with(ZIP) => match has_end_of_zip(path) {
            Ok(false) => Some(LayoutMistake::CutArchive),
            Ok(true) | Err(_) => None,
        },
        _ if is_pickle(start) => other("a pickled Python object", AS_SCRIPT),
        _ if start.starts_with(GZIP) => other("compressed", "unpack it first (gunzip)"),
        _ => Some(LayoutMistake::NoArchive),
    }
}

/// Returns true if the file has the record that ends every zip archive, possibly with a comment after it.
fn has_end_of_zip(path: &Path) -> io::Result<bool> {
    let mut file: File = galatea_regular_files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_OF_ZIP_AND_COMMENT)))?;
    let mut end = Vec::new();
    file.take(END_OF_ZIP_AND_COMMENT).read_to_end(&mut end)?;
    Ok(end.windows(END_OF_ZIP.len()).any(|window| window == END_OF_ZIP))
}

fn is_pickle(start: &[u8]) -> bool {
    PICKLE.iter().any(|magic| start.starts_with(magic))
}

/// The name that the class of a Python model must have.
const CLASS: &str = "TritonPythonModel";

/// Ways in which code gets names that its text does not show.
const FROM_ELSEWHERE: [&str; 4] = ["import *", "exec(", "globals()", "__getattr__"];

/// Returns a mistake only if the code cannot get the class from elsewhere.
fn no_python(path: &Path) -> Option<ForeignContent> {
    let code = read_text_file(path).ok()?;
    let may_have = words(&code).any(|word| word == CLASS)
        || FROM_ELSEWHERE.iter().any(|way| code.contains(way));
    if may_have {
        return None;
    }
    let classes: Vec<(&str, Position)> = classes(&code).collect();
    let near = suggest::nearest(CLASS, classes.iter().map(|(name, _)| *name));
    let meant = match (&near[..], &classes[..]) {
        ([near, ..], _) => classes.iter().find(|(name, _)| name == near),
        ([], [only]) => Some(only),
        ([], _) => None,
    };
    Some(match meant {
        Some(&(name, position)) => ForeignContent {
            mistake: LayoutMistake::PythonClassName {
                found: shown(name),
                is_near: !near.is_empty(),
            },
            place: Some(Place::in_text("", &code, position)),
        },
        None => LayoutMistake::NoPythonClass.into(),
    })
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// Returns the classes at the outermost level of the code, each with its place.
fn classes(code: &str) -> impl Iterator<Item = (&str, Position)> {
    code.lines().enumerate().filter_map(|(index, line)| {
        let rest = line.strip_prefix("class ")?;
        let name = words(rest.trim_start()).next().filter(|name| !name.is_empty())?;
        let column = line.chars().take_while(|c| *c != ' ').count();
        let spaces = line.chars().skip(column).take_while(|c| *c == ' ').count();
        Some((name, Position { line: index + 1, column: column + spaces + 1 }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &str, expected: Option<(&str, usize, usize)>) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("model.py");
        std::fs::write(&path, code).expect("written");
        let found = mistake(&path, "python");
        let named = found.as_ref().map(|found| match &found.mistake {
            LayoutMistake::PythonClassName { found, .. } => found.as_str(),
            _ => "",
        });
        let position = found.as_ref().and_then(|found| found.place.as_ref()?.position);
        let position = position.map_or((0, 0), |at| (at.line, at.column));
        assert_eq!(named.map(|name| (name, position.0, position.1)), expected, "{code}");
    }

    #[test]
    fn the_class_of_a_python_model_is_found() {
        check("class TritonPythonModel:\n    pass\n", None);
        check("from mine import TritonPythonModel\n", None);
        check("from mine import *\n", None);
        check("globals()['Triton' + 'PythonModel'] = object\n", None);
        check(
            "import os\nclass TritonPythonModell:\n    pass\n",
            Some(("TritonPythonModell", 2, 7)),
        );
        check("class  TritonPythonmodel(Base):\n", Some(("TritonPythonmodel", 1, 8)));
        check("class Helper:\n  pass\nclass PythonModel: pass\n", Some(("", 0, 0)));
        check("class Model:\n    class TritonPythonModl: pass\n", Some(("Model", 1, 7)));
        check("def execute(): pass\n", Some(("", 0, 0)));
    }
}

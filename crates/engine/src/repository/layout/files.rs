//! Names in a folder, as far as they are looked at, and what a name says about a file.

use std::{fs, path::Path};

use crate::repository::text_file::is_loop;

/// Entries of one folder that are looked at.
const MOST_ENTRIES: usize = 1000;
/// Names that a text lists, and characters of each.
const MOST_NAMES: usize = 3;
const MOST_CHARACTERS: usize = 100;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub name: String,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    File,
    Folder,
    /// A link to what is not there.
    LostLink,
    Other,
}

/// What lies in a folder, by name; hidden entries and names that are no text do not count.
pub(super) fn entries(folder: &Path) -> Vec<Entry> {
    let Ok(listed) = fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        (!name.starts_with('.')).then(|| Entry { kind: kind_of(&entry.path()), name })
    };
    let mut found: Vec<Entry> = listed.flatten().take(MOST_ENTRIES).filter_map(named).collect();
    found.sort();
    found
}

pub(super) fn kind_of(path: &Path) -> EntryKind {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => EntryKind::Folder,
        Ok(found) if found.is_file() => EntryKind::File,
        Ok(_) => EntryKind::Other,
        Err(error) if is_loop(&error) => EntryKind::LostLink,
        // One that may not be looked at is reported where it is opened.
        Err(_) if path.is_symlink() && fs::exists(path).is_ok_and(|there| !there) => {
            EntryKind::LostLink
        }
        Err(_) => EntryKind::Other,
    }
}

/// A name from the disk for a text: on one line, and not endless.
pub(super) fn shown(name: &str) -> String {
    let mut escaped = name.chars().flat_map(char::escape_debug);
    let mut text: String = escaped.by_ref().take(MOST_CHARACTERS).collect();
    if escaped.next().is_some() {
        text.push_str("...");
    }
    text
}

/// `'a', 'b' and 2 more`.
pub(super) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> =
        names.iter().take(MOST_NAMES).map(|name| format!("'{}'", shown(name))).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => quoted.join(" and "),
        more => format!("{} and {more} more", quoted.join(", ")),
    }
}

/// What the end of a file's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    /// A model for this backend, which looks for a file of this name.
    Model { backend: &'static str, filename: &'static str },
    /// A model that nothing here runs: what it is, and the way out.
    Foreign { what: &'static str, advice: &'static str },
    /// No model.
    Unknown,
}

/// By the end of the name.
pub(super) fn file_type(name: &str) -> FileType {
    const TO_ONNX: &str = "export it to ONNX (for PyTorch also with torch.jit.script), or write a model.py that loads it";
    const SKLEARN: &str = "export it to ONNX with skl2onnx, or write a model.py that loads it";
    const KERAS: &str = "save it as a SavedModel (model.export('model.savedmodel') of Keras), or export it to ONNX with tf2onnx";
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let model = |backend, filename| FileType::Model { backend, filename };
    let foreign = |what, advice| FileType::Foreign { what, advice };
    match extension.to_ascii_lowercase().as_str() {
        "onnx" => model("onnxruntime", "model.onnx"),
        "pt" | "pth" | "torchscript" => model("pytorch", "model.pt"),
        "pt2" => model("pytorch", "model.pt2"),
        "py" => model("python", "model.py"),
        "pkl" | "pickle" | "joblib" => foreign("a pickled Python object", SKLEARN),
        "h5" | "keras" => foreign("a Keras model", KERAS),
        "savedmodel" => model("tensorflow", "model.savedmodel"),
        "graphdef" => model("tensorflow", "model.graphdef"),
        "tflite" => foreign("a TensorFlow Lite model", KERAS),
        "plan" | "engine" | "trt" => foreign("a TensorRT engine", galatea_config::TENSORRT_ENGINE),
        "safetensors" | "ckpt" | "bin" => foreign("a file of weights", TO_ONNX),
        "gguf" => {
            foreign("a GGUF model", "serve it from a model.py that loads it (llama-cpp-python)")
        }
        _ => FileType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_are_cut() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(300)).len(), MOST_CHARACTERS + 3);
        assert_eq!(listed(&["a", "b"]), "'a' and 'b'");
        assert_eq!(listed(&["a", "b", "c", "d", "e"]), "'a', 'b', 'c' and 2 more");
    }

    #[test]
    fn ends_of_names() {
        let model = |name| match file_type(name) {
            FileType::Model { backend, .. } => backend,
            FileType::Foreign { what, .. } => what,
            FileType::Unknown => "",
        };
        for (name, expected) in [
            ("iris.onnx", "onnxruntime"),
            ("Model.ONNX", "onnxruntime"),
            ("a.b.pth", "pytorch"),
            ("model.pt2", "pytorch"),
            ("x.py", "python"),
            ("clf.joblib", "a pickled Python object"),
            ("model.plan", "a TensorRT engine"),
            ("labels.txt", ""),
            ("onnx", ""),
        ] {
            assert_eq!(model(name), expected, "{name}");
        }
    }
}

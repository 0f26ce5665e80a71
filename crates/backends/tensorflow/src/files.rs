//! The files of a model: its form, and other files in a model's place.

use std::{
    fs,
    path::{Path, PathBuf},
};

use galatea_backend::CompletionContext;
use galatea_config::Diagnostic;
use galatea_types::{Code, Error, Result};

use crate::saved_model::restores_variables;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelFiles {
    /// The folder that `saved_model.pb` is in.
    SavedModel(PathBuf),
    /// A file.
    Graph(PathBuf),
}

pub(crate) const SAVED_MODEL: &str = "saved_model.pb";
const TEXT: &str = "saved_model.pbtxt";
const GRAPH_PLATFORM: &str = "tensorflow_graphdef";
const SAVED_MODEL_PLATFORM: &str = "tensorflow_savedmodel";

impl ModelFiles {
    /// Finds the files by the platform and file name of a configuration.
    pub fn find(version: &CompletionContext<'_>, platform: &str, filename: &str) -> Result<Self> {
        let is_graph = match platform {
            GRAPH_PLATFORM => true,
            SAVED_MODEL_PLATFORM => false,
            "" => !filename.is_empty() && !version.version_dir.join(filename).is_dir(),
            other => return Err(no_platform(version.model_name, other)),
        };
        let default = if is_graph { "model.graphdef" } else { "model.savedmodel" };
        let filename = if filename.is_empty() { default } else { filename };
        let path = version.version_dir.join(filename);
        let is_there = if is_graph { path.is_file() } else { path.join(SAVED_MODEL).is_file() };
        match is_there {
            true if is_graph => Ok(Self::Graph(path)),
            true => Self::saved_model(version, path),
            false => Err(not_there(version, &path, is_graph)),
        }
    }

    fn saved_model(version: &CompletionContext<'_>, folder: PathBuf) -> Result<Self> {
        let variables = folder.join("variables");
        let has_data = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains(".data-");
        let has_index = variables.join("variables.index").is_file();
        // TensorFlow would load it, and every request would fail. An unreadable file gets its own error.
        if !has_index && restores_variables(&folder.join(SAVED_MODEL)).unwrap_or(false) {
            let text = "the model has variables, and the folder with their values is missing";
            return Err(at(version, &variables, text, "copy the whole folder of the SavedModel"));
        }
        let is_half = has_index
            && !fs::read_dir(&variables)
                .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(has_data)));
        if is_half {
            let text = "the values of its variables (variables.data-00000-of-00001) are missing";
            return Err(at(version, &variables, text, "copy the whole folder of the SavedModel"));
        }
        Ok(Self::SavedModel(folder))
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::SavedModel(path) | Self::Graph(path) => path,
        }
    }

    /// Returns the file with the model's declarations.
    pub fn header(&self) -> PathBuf {
        match self {
            Self::SavedModel(folder) => folder.join(SAVED_MODEL),
            Self::Graph(file) => file.clone(),
        }
    }
}

fn no_platform(model: &str, platform: &str) -> Error {
    let text = format!("platform {platform} not supported for TensorFlow model '{model}'");
    Diagnostic::error(text)
        .about("platform")
        .with_advice(format!(
            "write `platform: \"{SAVED_MODEL_PLATFORM}\"` or `platform: \"{GRAPH_PLATFORM}\"`"
        ))
        .into_error(Code::InvalidArg)
}

/// Returns a diagnostic about a file in the model's folder, beginning with Triton's words if clients know them.
fn at(version: &CompletionContext<'_>, path: &Path, text: &str, advice: &str) -> Error {
    let text =
        format!("unable to load model '{}': '{}': {text}", version.model_name, path.display());
    Diagnostic::error(text)
        .with_advice(advice)
        .at(version.place(path))
        .into_error(Code::Unavailable)
}

const TO_SAVED_MODEL: &str = "save the model as a SavedModel: model.export('model.savedmodel') of Keras, or \
     tf.saved_model.save(module, 'model.savedmodel')";
const FROM_CHECKPOINT: &str = "a checkpoint holds weights and no graph: build the model in Python, restore the checkpoint, \
     and save it with tf.saved_model.save or model.export (of TensorFlow 1: freeze the graph into a model.graphdef)";

/// Returns the error of a missing model, with advice that depends on the files in its place.
fn not_there(version: &CompletionContext<'_>, path: &Path, is_graph: bool) -> Error {
    let text =
        format!("unable to find '{}' for model instance '{}'", path.display(), version.model_name);
    let advice = advice(version.version_dir, path, is_graph);
    Diagnostic::error(text)
        .with_advice(advice)
        .at(version.place(version.version_dir))
        .into_error(Code::Unavailable)
}

fn advice(version_dir: &Path, path: &Path, is_graph: bool) -> String {
    if !is_graph && path.is_dir() {
        return match path.join(TEXT).is_file() {
            true => format!(
                "it has a {TEXT} in the form of text: save the model again, which writes {SAVED_MODEL}"
            ),
            false => {
                format!("the folder has no {SAVED_MODEL}: copy the whole folder that was saved")
            }
        };
    }
    if !is_graph && path.is_file() {
        return format!(
            "it is a file, where the folder of a SavedModel should be; for a graph write `platform: \"{GRAPH_PLATFORM}\"`"
        );
    }
    let mut names: Vec<String> = fs::read_dir(version_dir)
        .into_iter()
        .flatten()
        .flatten()
        .take(1000)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let has = |is: &dyn Fn(&str) -> bool| names.iter().any(|name| is(name));
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    if has(&|name| name == SAVED_MODEL) {
        return format!(
            "the SavedModel lies in the version folder itself: move {SAVED_MODEL}, variables and assets \
             into a folder '{wanted}' in it"
        );
    }
    if has(&|name| name.ends_with(".keras") || name.ends_with(".h5") || name.ends_with(".hdf5")) {
        return format!(
            "there is a Keras file, which TensorFlow's library cannot load: {TO_SAVED_MODEL}"
        );
    }
    if has(&|name| name == "checkpoint" || name.contains(".ckpt") || name.ends_with(".index")) {
        return FROM_CHECKPOINT.to_owned();
    }
    if has(&|name| name.ends_with(".tflite")) {
        return format!(
            "there is a TensorFlow Lite model, which needs another library: {TO_SAVED_MODEL}"
        );
    }
    let other = names.iter().find(|name| name.ends_with(".pb") || name.ends_with(".savedmodel"));
    match other {
        Some(other) => format!("there is '{other}': write `default_model_filename: \"{other}\"`"),
        None => format!("copy the model to the version folder as '{wanted}'"),
    }
}

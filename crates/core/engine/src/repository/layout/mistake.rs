//! The mistakes in a repository's layout, each with advice.

use std::{error, fmt};

use galatea_config::{Diagnostic, Place, Severity};
use galatea_types::Error;

use super::file_type::ForeignFile;
use crate::repository::text_file::LET_READ;

const KEEP_ENDING: &str = "do not rename it: the end of the name tells what it is";
const MODEL_NAMES: &str = "call the model's file model.onnx (ONNX), model.pt (TorchScript), model.pt2 (AOTInductor package), \
     model.savedmodel or model.graphdef (TensorFlow), model.xml (OpenVINO) or model.py (Python), or write backend and \
     default_model_filename into config.pbtxt; a model of another kind needs a model.py that loads it";

/// Something in a wrong place or form in a model repository.
///
/// The text says what was found, [`LayoutMistake::advice`] what to do. Clients read both: they name files by their places in
/// the repository, never by those on the machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LayoutMistake {
    #[error("there is no version folder")]
    NoVersion { model: String, file: String, is_ensemble: bool },
    #[error(
        "the folder '{folder}' is not a version: version folders are named by a whole number without leading zeros"
    )]
    VersionName { folder: String, number: String },
    #[error("'{name}' is a file, and a version is a folder")]
    VersionIsFile { name: String, file: String },
    #[error("the link leads to nothing")]
    LostLink,
    #[error("the model's file lies beside the version folders")]
    OutsideVersion { target: String },
    #[error("the version folder is empty")]
    EmptyVersion { file: String },
    #[error("found '{found}' where '{wanted}' is looked for")]
    OtherName { found: String, wanted: String, fields: String },
    #[error("found {found} where '{wanted}' is looked for")]
    SeveralFiles { found: String, wanted: String, fields: String },
    #[error(
        "'{found}' is a file for backend '{fitting}', and the configuration names backend '{backend}'"
    )]
    OtherBackend { found: String, fitting: &'static str, backend: String, wanted: String },
    #[error("found '{found}' where '{wanted}' is looked for")]
    NeedsFilename { found: String, wanted: String, backend: &'static str },
    #[error("'{found}' is {}, which no backend of this server runs", file.what)]
    NoBackend { found: String, file: ForeignFile },
    #[error("the version folder holds {found}, and no file whose name tells which backend runs it")]
    NoModelFile { found: String },
    #[error("the model's file lies in a folder of its own")]
    TooDeep { target: String },
    #[error("default_model_filename '{given}' begins with the version folder")]
    NamesVersion { given: String, file: String },
    #[error("the file is a Git LFS pointer, and not the model")]
    LfsPointer,
    #[error("the file is empty")]
    EmptyFile,
    #[error("it cannot be read: {reason}")]
    Unreadable { reason: String },
    #[error("it is not a file")]
    NoFile,
    #[error("the file is a web page, and not the model")]
    WebPage,
    #[error("the file is {what}, and not {wanted}")]
    OtherContent { what: &'static str, wanted: &'static str, advice: &'static str },
    #[error("the file is not a zip archive, but every PyTorch model is one")]
    NoArchive,
    #[error("the file is an incomplete zip archive")]
    CutArchive,
    #[error("the code has no class TritonPythonModel")]
    NoPythonClass,
    #[error("the code has no class TritonPythonModel")]
    PythonClassName { found: String, is_near: bool },
    #[error("the file '{found}' is not read: a configuration is called 'config.pbtxt'")]
    ConfigName { found: String },
    #[error("the configuration is not read here: it belongs to the model, and not to a version")]
    ConfigInVersion { target: String },
    #[error("the folder is one model, and not a repository of models")]
    OneModel,
    #[error("there is no model to serve here")]
    Nothing,
    #[error("the file lies in the repository itself, and not in the folder of a model")]
    FileInRoot { target: String },
    #[error("a version folder lies in the repository itself, and not in the folder of a model")]
    VersionInRoot,
}

impl LayoutMistake {
    /// Returns the advice on the mistake.
    pub fn advice(&self) -> String {
        match self {
            Self::NoVersion { model, is_ensemble: true, .. } => {
                format!("make the empty folder '{model}/1': an ensemble has versions too")
            }
            Self::NoVersion { model, file, .. } => {
                format!("make the folder '{model}/1' and put the model's file into it as '{file}'")
            }
            Self::VersionName { number, .. } => format!("rename it to '{number}'"),
            Self::VersionIsFile { name, file } => {
                format!("make a folder '{name}' and put the file into it as '{file}'")
            }
            Self::LostLink => "put the file or folder itself in its place, or remove it".to_owned(),
            Self::OutsideVersion { target }
            | Self::TooDeep { target }
            | Self::FileInRoot { target }
            | Self::ConfigInVersion { target } => format!("move it to '{target}'"),
            Self::EmptyVersion { file } => format!("put the model's file into it as '{file}'"),
            Self::OtherName { wanted, fields, .. } => {
                format!("rename it to '{wanted}', or set {fields} in config.pbtxt")
            }
            Self::SeveralFiles { wanted, fields, .. } => {
                format!("rename the one to serve to '{wanted}', or set {fields} in config.pbtxt")
            }
            Self::OtherBackend { fitting, wanted, .. } => {
                format!("write backend: \"{fitting}\", or put the file '{wanted}' here")
            }
            Self::NeedsFilename { found, backend: "", .. } => {
                format!("set default_model_filename: \"{found}\" in config.pbtxt; {KEEP_ENDING}")
            }
            Self::NeedsFilename { found, backend, .. } => {
                format!(
                    "set backend: \"{backend}\" and default_model_filename: \"{found}\" in config.pbtxt; {KEEP_ENDING}"
                )
            }
            Self::NoModelFile { .. } => MODEL_NAMES.to_owned(),
            Self::NoBackend { file: ForeignFile { advice, .. }, .. }
            | Self::OtherContent { advice, .. } => (*advice).to_owned(),
            Self::NamesVersion { file, .. } => {
                format!("write default_model_filename: \"{file}\": it is looked for in each version folder")
            }
            Self::ConfigName { .. } => "rename it to 'config.pbtxt'".to_owned(),
            Self::OneModel => {
                "give the folder above it as the repository: each folder in a repository is a model".to_owned()
            }
            Self::Nothing => {
                "put each model into a folder of its own, as in 'iris/1/model.onnx'".to_owned()
            }
            Self::VersionInRoot => {
                "put it into a folder with the name of the model, or give the folder above as the repository".to_owned()
            }
            of_file => of_file.advice_on_file(),
        }
    }

    /// Returns the advice on a file whose content differs from its name.
    fn advice_on_file(&self) -> String {
        match self {
            Self::LfsPointer => {
                "run `git lfs pull` in the checkout, so that the model itself is there".to_owned()
            }
            Self::EmptyFile => "copy the model again: the file has no content".to_owned(),
            Self::Unreadable { .. } => LET_READ.to_owned(),
            Self::NoFile => "put the model's file in its place: it is a folder, a pipe or a device".to_owned(),
            Self::WebPage => {
                "download it again: the address answered with a page, perhaps for a login or of an error".to_owned()
            }
            Self::NoArchive => {
                "save the model with torch.jit.script or torch.jit.trace and save(), or copy it again".to_owned()
            }
            Self::CutArchive => "copy the model again, and compare the sizes of both files".to_owned(),
            // In the words that the code itself gets when it is loaded.
            Self::PythonClassName { found, is_near: true } => {
                format!("should '{found}' have that name?")
            }
            Self::PythonClassName { found, .. } => format!("'{found}' must have that name"),
            Self::NoPythonClass => {
                "the model needs a class of that name, with a method execute(self, requests)".to_owned()
            }
            _ => String::new(),
        }
    }
}

/// A mistake and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlacedMistake {
    /// The path from the repository on, such as `iris/1/model.onnx`; empty for the repository itself.
    pub path: String,
    /// The mistake there.
    pub mistake: LayoutMistake,
    /// The place in the file of `path`, if it is text.
    place: Option<Place>,
}

impl PlacedMistake {
    pub fn new(path: impl Into<String>, mistake: LayoutMistake) -> Self {
        Self { path: path.into(), mistake, place: None }
    }

    /// Adds a place in its file's text.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place.map(|mut place| {
            place.file.clone_from(&self.path);
            place
        });
        self
    }

    fn place(&self) -> Place {
        self.place.clone().unwrap_or_else(|| Place::file(&*self.path))
    }

    /// Returns true if nothing is served as it was meant.
    pub fn is_grave(&self) -> bool {
        matches!(self.mistake, LayoutMistake::OneModel | LayoutMistake::VersionInRoot)
    }

    /// Returns true if the mistake is reported after the error of a load. What code lacks, its own error says, and the code may
    /// fail earlier for another reason.
    pub fn is_told_at_load(&self) -> bool {
        !matches!(
            self.mistake,
            LayoutMistake::NoPythonClass | LayoutMistake::PythonClassName { .. }
        )
    }

    /// Returns a diagnostic of the mistake when no load has failed because of it.
    pub fn diagnostic(&self, severity: Severity) -> Diagnostic {
        let found = Diagnostic { severity, ..Diagnostic::error(self.mistake.to_string()) };
        found.with_advice(self.mistake.advice()).at(self.place())
    }

    /// Returns the error of a load with this as its cause. Clients know the error by its text, so this comes last.
    pub fn explain(&self, error: Error) -> Error {
        let sentence = match Diagnostic::of(&error) {
            Some(found) => &found.text,
            None => error.message().trim_end(),
        };
        let found = Diagnostic::error(sentence)
            .with_advice(format!("{}; {}", self.mistake, self.mistake.advice()))
            .at(self.place());
        let text = format!("{sentence}{}", found.appendix());
        Error::new(error.code(), text).with_source(ExplainedError { found, error })
    }

    /// Returns a line for a log that does not name the repository. `root` is its name.
    pub fn line(&self, root: &str) -> String {
        let place =
            if self.path.is_empty() { root.to_owned() } else { format!("{root}/{}", self.path) };
        format!("{place}: {}; {}", self.mistake, self.mistake.advice())
    }
}

/// The reason why a load failed, with its cause as the source of the error.
#[derive(Debug)]
struct ExplainedError {
    found: Diagnostic,
    error: Error,
}

/// Writes the causes of the error for the log, which has its text already.
impl fmt::Display for ExplainedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.error.with_causes();
        let causes = whole.strip_prefix(self.error.message().trim_end()).unwrap_or(&whole);
        f.write_str(causes.trim_start_matches([':', ' ']).trim_end())
    }
}

impl error::Error for ExplainedError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.found)
    }
}

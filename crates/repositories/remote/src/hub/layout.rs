//! Finds the models in a hub's repository: a model repository in Triton's layout, the folder of one model, or one model
//! file.

use std::collections::{BTreeMap, BTreeSet};

use super::{address::HubAddress, listing::HubFile};
use crate::error::{FailureKind, RemoteError};

const CONFIG: &str = "config.pbtxt";

/// Most model files that an error names.
const SHOWN: usize = 5;

/// Returns the backend of a model file by its name, or the reason why it cannot be served.
pub type BackendOf = fn(&str) -> Result<&'static str, String>;

/// The models to serve.
#[derive(Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// Folders of models, with their files by path below the folder of the model.
    Models(BTreeMap<String, Vec<(String, &'a HubFile)>>),
    /// One model file.
    File(ModelFile<'a>),
}

/// A model that is one file, with the other files that belong to it.
#[derive(Debug, PartialEq, Eq)]
pub struct ModelFile<'a> {
    /// Name of the model.
    pub model: String,
    /// Name of the file.
    pub name: String,
    pub backend: &'static str,
    /// The file and those that belong to it, by path below its folder.
    pub files: Vec<(String, &'a HubFile)>,
    pub config: Option<&'a HubFile>,
}

/// # Errors
/// When the path does not exist, or nothing there can be served; the text says what to name instead.
pub fn of<'a>(
    address: &HubAddress,
    files: &'a [HubFile],
    backend_of: BackendOf,
) -> Result<Layout<'a>, RemoteError> {
    let folder = address.path.as_str();
    if files.iter().any(|file| file.path == folder) {
        return of_file(address, files, backend_of);
    }
    let below = below(files, folder);
    if below.is_empty() {
        let text = match folder {
            "" => "the repository is empty".to_owned(),
            path => format!("there is no '{path}' in it at revision '{}'", address.revision),
        };
        return Err(RemoteError::new(FailureKind::Missing, text));
    }
    of_folder(address, folder, below, backend_of)
}

/// Returns the files below a folder, by path below it.
fn below<'a>(files: &'a [HubFile], folder: &str) -> Vec<(String, &'a HubFile)> {
    let inside = |file: &'a HubFile| {
        let path = match folder {
            "" => Some(file.path.as_str()),
            _ => file.path.strip_prefix(folder)?.strip_prefix('/'),
        };
        Some((path?.to_owned(), file))
    };
    files.iter().filter_map(inside).collect()
}

fn of_file<'a>(
    address: &HubAddress,
    files: &'a [HubFile],
    backend_of: BackendOf,
) -> Result<Layout<'a>, RemoteError> {
    let (folder, name) = address.path.rsplit_once('/').unwrap_or(("", &address.path));
    let backend = backend_of(name).map_err(|text| RemoteError::new(FailureKind::Invalid, text))?;
    let (model_folder, version) = folder.rsplit_once('/').unwrap_or(("", folder));
    if is_number(version) && stem(name) == "model" {
        return Ok(of_model(address, model_folder, below(files, model_folder)));
    }
    Ok(Layout::File(model_file(address, name, backend, below(files, folder))))
}

fn of_folder<'a>(
    address: &HubAddress,
    folder: &str,
    files: Vec<(String, &'a HubFile)>,
    backend_of: BackendOf,
) -> Result<Layout<'a>, RemoteError> {
    let flat = flat_model(&files, backend_of);
    let is_model = |files: &[(String, _)]| is_model(files.iter().map(|(path, _)| path.as_str()));
    // A configuration beside a file belongs to that file if there is no version folder.
    let is_one_file = flat.is_some() && is_model(&files) && !has_versions(&files);
    if !is_one_file {
        if is_model(&files) {
            return Ok(of_model(address, folder, files));
        }
        let folders = by_folder(&files);
        if folders.values().any(|files| is_model(files)) {
            return Ok(Layout::Models(folders));
        }
    }
    match flat {
        Some((name, backend)) => Ok(Layout::File(model_file(address, &name, backend, files))),
        None => Err(nothing(address, &files, backend_of)),
    }
}

/// Returns the folders, each with its files by path below it. Hidden ones are left out.
fn by_folder<'a>(files: &[(String, &'a HubFile)]) -> BTreeMap<String, Vec<(String, &'a HubFile)>> {
    let mut folders: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (path, file) in files {
        if let Some((folder, rest)) = path.split_once('/')
            && !folder.starts_with('.')
        {
            folders.entry(folder.to_owned()).or_default().push((rest.to_owned(), *file));
        }
    }
    folders
}

fn has_versions(files: &[(String, &HubFile)]) -> bool {
    files.iter().any(|(path, _)| path.split_once('/').is_some_and(|(folder, _)| is_number(folder)))
}

/// Returns true if the paths contain a configuration, or version folders that are not models themselves.
fn is_model<'p>(paths: impl Iterator<Item = &'p str>) -> bool {
    let (mut versions, mut models) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        if path == CONFIG {
            return true;
        }
        let Some((folder, rest)) = path.split_once('/') else { continue };
        if is_number(folder) {
            versions.insert(folder);
            let has_version = rest.split_once('/').is_some_and(|(inner, _)| is_number(inner));
            if rest == CONFIG || has_version {
                models.insert(folder);
            }
        }
    }
    versions.difference(&models).next().is_some()
}

fn of_model<'a>(
    address: &HubAddress,
    folder: &str,
    files: Vec<(String, &'a HubFile)>,
) -> Layout<'a> {
    let name = folder.rsplit('/').next().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| address.name());
    let is_visible = |(path, _): &(String, &HubFile)| !path.starts_with('.');
    Layout::Models([(name.to_owned(), files.into_iter().filter(is_visible).collect())].into())
}

/// Returns the model file: the only one, or the one with the usual name. A Python file must have the usual name: most are
/// something else.
fn flat_model(
    files: &[(String, &HubFile)],
    backend_of: BackendOf,
) -> Option<(String, &'static str)> {
    let here = files.iter().filter(|(path, _)| !path.contains('/'));
    let known = here.filter_map(|(path, _)| Some((path.clone(), backend_of(path).ok()?)));
    let is_model = |name: &str| stem(name) == "model";
    let models: Vec<_> =
        known.filter(|(name, _)| is_model(name) || !name.ends_with(".py")).collect();
    match models.as_slice() {
        [only] => Some(only.clone()),
        several => several.iter().find(|(name, _)| is_model(name)).cloned(),
    }
}

fn model_file<'a>(
    address: &HubAddress,
    name: &str,
    backend: &'static str,
    beside: Vec<(String, &'a HubFile)>,
) -> ModelFile<'a> {
    let config = beside.iter().find(|(path, _)| path == CONFIG).map(|(_, file)| *file);
    let model = match stem(name) {
        "model" => address.name(),
        stem => stem,
    };
    let belongs = |(path, _): &(String, &HubFile)| match backend {
        // The model may import and read any file there.
        "python" => path != CONFIG && !path.starts_with('.'),
        _ => path == name || is_data_of(name, path),
    };
    let in_url = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    ModelFile {
        model: model.chars().map(in_url).collect(),
        name: name.to_owned(),
        backend,
        files: beside.into_iter().filter(belongs).collect(),
        config,
    }
}

/// Returns true for the weights of another file: `model.onnx_data`, `model.onnx.data`, `model.data`, `model_data` ....
fn is_data_of(name: &str, path: &str) -> bool {
    let rest = |start: &str| path.strip_prefix(start).unwrap_or_default().to_owned();
    !path.contains('/')
        && (rest(name).starts_with(['_', '.'])
            || [".data", "_data", ".bin", ".weights"].contains(&rest(stem(name)).as_str()))
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn nothing(
    address: &HubAddress,
    files: &[(String, &HubFile)],
    backend_of: BackendOf,
) -> RemoteError {
    let models =
        files.iter().filter(|(path, _)| !path.ends_with(".py") && backend_of(path).is_ok());
    let at = match address.revision.as_str() {
        "main" => String::new(),
        revision => format!("@{revision}"),
    };
    let shown: Vec<_> = models
        .map(|(_, file)| format!("hf://{}{at}/{}", address.repository, file.path))
        .take(SHOWN)
        .collect();
    let text = match shown.is_empty() {
        true => "it has no models that can be served: no folders as in Triton, and no .onnx, .pt or .pt2 file; \
                 weights alone (.safetensors, .bin) need a model.py that loads them, or an export to ONNX"
            .to_owned(),
        false => format!(
            "there are no model folders in it; name one of its model files: {}",
            shown.join(", ")
        ),
    };
    RemoteError::new(FailureKind::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend_of(name: &str) -> Result<&'static str, String> {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("onnx") => Ok("onnxruntime"),
            Some("pt") => Ok("pytorch"),
            Some("py") => Ok("python"),
            _ => Err(format!("'{name}' cannot be served")),
        }
    }

    /// `MODEL: path path` for each model; `*` marks a model that is one file.
    fn show(given: &str, paths: &[&str]) -> String {
        let address = HubAddress::parse(given).expect("an address");
        let file = |path: &&str| HubFile {
            path: (*path).to_owned(),
            size: 1,
            version: "v".into(),
            sha256: None,
        };
        let files: Vec<_> = paths.iter().map(file).collect();
        let list = |files: &[(String, &HubFile)]| {
            files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>().join(" ")
        };
        match of(&address, &files, backend_of) {
            Err(error) => error.to_string(),
            Ok(Layout::Models(models)) => {
                let shown = models.iter().map(|(name, files)| format!("{name}: {}", list(files)));
                shown.collect::<Vec<_>>().join("; ")
            }
            Ok(Layout::File(file)) => {
                let config = if file.config.is_some() { " +config" } else { "" };
                format!("{}*{}: {}{config}", file.model, file.backend, list(&file.files))
            }
        }
    }

    const TYPICAL: [&str; 8] = [
        ".gitattributes",
        "README.md",
        "config.json",
        "model.safetensors",
        "onnx/model.onnx",
        "onnx/model.onnx_data",
        "onnx/model_quantized.onnx",
        "modeling_x.py",
    ];

    #[test]
    fn model_files_are_recognized() {
        for (given, expected) in [
            ("hf://org/bert/onnx/model.onnx", "bert*onnxruntime: model.onnx model.onnx_data"),
            (
                "hf://org/bert/onnx/model_quantized.onnx",
                "model_quantized*onnxruntime: model_quantized.onnx",
            ),
            ("hf://org/bert/onnx", "bert*onnxruntime: model.onnx model.onnx_data"),
            ("hf://org/bert/model.safetensors", "'model.safetensors' cannot be served"),
        ] {
            assert_eq!(show(given, &TYPICAL), expected, "{given}");
        }
        assert_eq!(show("hf://o/m", &["README.md", "a b.onnx"]), "a_b*onnxruntime: a b.onnx");
        assert_eq!(
            show("hf://o/m", &["model.py", "part/x.py", "config.pbtxt"]),
            "m*python: model.py part/x.py +config"
        );
        let python = ["run/model.py", "run/part/x.py", "run/config.pbtxt", "other"];
        assert_eq!(show("hf://o/m/run/model.py", &python), "m*python: model.py part/x.py +config");
    }

    #[test]
    fn model_folders_are_recognized() {
        let one = ["config.pbtxt", "1/model.onnx", ".gitattributes", "README.md"];
        assert_eq!(show("hf://o/m", &one), "m: config.pbtxt 1/model.onnx README.md");
        assert_eq!(show("hf://o/m/1/model.onnx", &one), "m: config.pbtxt 1/model.onnx README.md");
        let several = [".github/x", "a/1/model.onnx", "b/config.pbtxt", "README.md", "a.onnx"];
        assert_eq!(show("hf://o/m", &several), "a: 1/model.onnx; b: config.pbtxt");
        assert_eq!(show("hf://o/m/a", &several), "a: 1/model.onnx");
        assert_eq!(show("hf://o/m/deep/x", &["deep/x/m/1/model.pt", "deep/y"]), "m: 1/model.pt");
        assert_eq!(
            show("hf://o/m", &["1/1/model.onnx", "2/1/model.onnx"]),
            "1: 1/model.onnx; 2: 1/model.onnx"
        );
    }

    #[test]
    fn a_repository_that_cannot_be_served_is_reported_with_advice() {
        let text = show("hf://org/bert", &TYPICAL);
        let expected = "hf://org/bert/onnx/model.onnx, hf://org/bert/onnx/model_quantized.onnx";
        assert!(
            text.starts_with("there are no model folders in it") && text.ends_with(expected),
            "{text}"
        );
        assert!(show("hf://org/bert@v1", &TYPICAL).contains("hf://org/bert@v1/onnx/model.onnx"));
        let weights = show("hf://o/m", &["model.safetensors", "README.md"]);
        assert!(weights.contains("export to ONNX"), "{weights}");
        assert_eq!(show("hf://o/m/x", &["y"]), "there is no 'x' in it at revision 'main'");
        assert_eq!(show("hf://o/m", &[]), "the repository is empty");
    }
}

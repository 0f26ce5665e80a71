//! The path after `galatea serve`: a repository, the folder of one model, or one model file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, anyhow, bail};
use galatea_engine::{LocalRoot, RepositoryRoot, SAVED_MODEL_FILE, SingleModelRoot, foreign_file};
use galatea_types::suggest;

/// The endings of files that are models by themselves, and their backends.
const MODEL_ENDINGS: [(&str, &str); 11] = [
    ("onnx", "onnxruntime"),
    ("ort", "onnxruntime"),
    ("xml", "openvino"),
    ("pt", "pytorch"),
    ("pth", "pytorch"),
    ("torchscript", "pytorch"),
    ("pt2", "pytorch"),
    ("py", "python"),
    ("savedmodel", TENSORFLOW),
    ("graphdef", TENSORFLOW),
    ("pb", TENSORFLOW),
];

/// The endings of model files, for texts. The others are rare names of the same formats.
pub const ENDINGS: &str = ".onnx, .pt, .pt2, .savedmodel, .graphdef, .pb, .xml, .py";

/// The backend of a SavedModel.
const TENSORFLOW: &str = "tensorflow";

/// Advice for files that may have any content, or are not models.
const OTHER_ENDINGS: [(&[&str], &str); 2] = [
    (&["pbtxt"], "a configuration is not a model: name the folder that it is in"),
    (
        &["json", "txt"],
        "serve a model.py that loads it, or export the model to ONNX (of XGBoost or LightGBM with onnxmltools)",
    ),
];

fn way_out(path: &Path, onnx: Option<&Path>) -> String {
    match onnx {
        Some(file) => format!("It has an ONNX model: galatea serve {}", file.display()),
        None => format!(
            "Export it to ONNX (optimum-cli export onnx --model {} EXPORTED) and serve EXPORTED, or write a model.py that \
             loads it",
            path.display()
        ),
    }
}

/// Returns the repository for a path.
///
/// # Errors
/// If the path cannot be served; the error has the reason and advice.
pub fn open(given: &Path) -> Result<Arc<dyn RepositoryRoot>> {
    let Ok(path) = fs::canonicalize(given) else { return Err(missing(given)) };
    // The path as written: the target of a link may have any name.
    let written = std::path::absolute(given).unwrap_or_else(|_| path.clone());
    if path.ends_with(SAVED_MODEL_FILE)
        && let Some(folder) = written.parent()
    {
        return of_one(given, folder, TENSORFLOW);
    }
    if is_saved_model(&path) {
        return of_one(given, &written, TENSORFLOW);
    }
    if path.is_dir() {
        return of_folder(given, &path);
    }
    if !path.is_file() {
        bail!("'{}' cannot be served: it is neither a folder nor a file", given.display());
    }
    of_one(given, &written, backend_of(given)?)
}

/// Returns true if the folder is a SavedModel, and not a folder of models.
pub fn is_saved_model(folder: &Path) -> bool {
    folder.join(SAVED_MODEL_FILE).is_file()
}

/// Returns the model of one file or SavedModel folder. If that is a version of a model, the whole model is returned.
fn of_one(given: &Path, file: &Path, backend: &'static str) -> Result<Arc<dyn RepositoryRoot>> {
    if let Some(model) = folder_of_version(file) {
        log::info!("'{}' belongs to the model in '{}'", given.display(), model.display());
        let name = name_of(&model)?;
        return Ok(SingleModelRoot::of_folder(given, model, name));
    }
    Ok(SingleModelRoot::of_file(given, file, stem_of(file)?, backend))
}

/// Returns the repository of an unpacked archive, whose name is `given`. Archives often hold a folder rather than its contents.
pub fn of_unpacked(given: &str, folder: &Path) -> Result<Arc<dyn RepositoryRoot>, String> {
    let folder = only_folder(folder).unwrap_or_else(|| folder.to_owned());
    let unreadable = |error| format!("cannot read what '{given}' unpacked to: {error}");
    fs::read_dir(&folder).map_err(unreadable)?;
    of_folder(&folder, &folder).map_err(|error| error.to_string())
}

/// Returns the only folder in another, unless it is a model: then the outer one is its repository.
fn only_folder(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.flatten();
    let only = entries.next().filter(|_| entries.next().is_none())?.path();
    let is_model = Entries::of(&only).ok()?.is_model();
    (only.is_dir() && !is_model).then_some(only)
}

/// Returns the backend of a model file by its name, or the reason why it cannot be served.
pub fn backend_of_name(name: &str) -> Result<&'static str, String> {
    backend_of(Path::new(name)).map_err(|error| error.to_string())
}

/// Serves a folder that holds a model's file instead of version folders.
fn of_flat_folder(given: &Path, folder: &Path, file: &str) -> Result<Arc<dyn RepositoryRoot>> {
    log::info!("'{file}' in '{}' is served as version 1 of a model", given.display());
    let file = folder.join(file);
    if is_saved_model(&file) {
        return of_one(given, &file, TENSORFLOW);
    }
    let stem = file.file_stem().unwrap_or_default();
    let model = if stem == "model" { name_of(folder)? } else { stem_of(&file)? };
    let backend = backend_of(&file)?;
    Ok(SingleModelRoot::of_file(given, &file, model, backend))
}

fn of_folder(given: &Path, folder: &Path) -> Result<Arc<dyn RepositoryRoot>> {
    if is_saved_model(folder) {
        return of_one(given, folder, TENSORFLOW);
    }
    let unreadable = |error| anyhow!("cannot read '{}': {error}", given.display());
    let found = Entries::of(folder).map_err(unreadable)?;
    if let Some(file) = found.flat_model() {
        return of_flat_folder(given, folder, file);
    }
    if found.is_model() {
        log::info!("'{}' is the folder of one model, which is served", given.display());
        return Ok(SingleModelRoot::of_folder(given, folder, name_of(folder)?));
    }
    match checkpoint(given, folder, &found) {
        Some(error) => Err(error),
        None => Ok(LocalRoot::at(given)),
    }
}

/// Returns the reason why the folder of a checkpoint is not a repository: it has a configuration and weights for a library.
fn checkpoint(given: &Path, folder: &Path, found: &Entries) -> Option<anyhow::Error> {
    let is_model = |path: &PathBuf| {
        let inner = fs::read_dir(path).into_iter().flatten().flatten().take(1000);
        inner
            .map(|entry| entry.path())
            .any(|path| is_number(&path) || path.ends_with("config.pbtxt"))
    };
    if !folder.join("config.json").is_file() || found.folders.iter().any(is_model) {
        return None;
    }
    let files = |folder: &Path| -> Vec<PathBuf> {
        let files = fs::read_dir(folder).into_iter().flatten().flatten().take(1000);
        files.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
    };
    let ends_with = |path: &&PathBuf, ending: &str| path.extension().is_some_and(|e| e == ending);
    let mut onnx: Vec<PathBuf> = found.folders.iter().flat_map(|folder| files(folder)).collect();
    onnx.retain(|path| ends_with(&path, "onnx"));
    onnx.sort_by_key(|path| (path.file_stem().is_none_or(|stem| stem != "model"), path.clone()));
    let has_weights = files(folder)
        .iter()
        .any(|path| ["safetensors", "bin", "h5", "msgpack"].iter().any(|e| ends_with(&path, e)));
    if onnx.is_empty() && !has_weights {
        return None;
    }
    let inner = onnx.first().and_then(|path| path.strip_prefix(folder).ok());
    Some(anyhow!(
        "'{}' cannot be served as it is: it is a checkpoint of a hub, with weights for the library that made it. {}",
        given.display(),
        way_out(given, inner.map(|inner| given.join(inner)).as_deref())
    ))
}

/// The entries that distinguish the folder of a model from a repository.
struct Entries {
    has_config: bool,
    folders: Vec<PathBuf>,
    model_files: Vec<String>,
}

impl Entries {
    fn of(folder: &Path) -> std::io::Result<Self> {
        let mut entries = Self { has_config: false, folders: Vec::new(), model_files: Vec::new() };
        for entry in fs::read_dir(folder)?.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') || name == "__pycache__" {
                continue;
            }
            entries.has_config |= name == "config.pbtxt";
            let is_model_folder = is_saved_model(&path) && !is_number(&path);
            if path.is_dir() && !is_model_folder {
                entries.folders.push(path);
            } else if is_model_folder || backend_of(&path).is_ok() {
                entries.model_files.push(name.into_owned());
            }
        }
        Ok(entries)
    }

    /// Returns the model's file in a folder without folders: the only one, or the one with the usual name.
    fn flat_model(&self) -> Option<&str> {
        match self.model_files.as_slice() {
            _ if !self.folders.is_empty() => None,
            [only] => Some(only),
            several => several.iter().find(|name| name.starts_with("model.")).map(String::as_str),
        }
    }

    /// Returns true for a configuration, or for version folders that are not models themselves.
    fn is_model(&self) -> bool {
        let is_version = |path: &PathBuf| is_number(path) && !path.join("config.pbtxt").exists();
        let has_versions = |path: &PathBuf| {
            let inner = fs::read_dir(path).into_iter().flatten().flatten();
            inner.map(|entry| entry.path()).any(|path| is_number(&path) && path.is_dir())
        };
        let mut versions = self.folders.iter().filter(|path| is_version(path)).peekable();
        self.has_config || (versions.peek().is_some() && !versions.all(has_versions))
    }
}

fn is_number(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the model's folder for a file in a version folder that is found there by its usual name.
fn folder_of_version(file: &Path) -> Option<PathBuf> {
    let version = file.parent().filter(|folder| is_number(folder))?;
    let model = version.parent().filter(|folder| folder.file_name().is_some())?;
    let stem = file.file_stem()?;
    (stem == "model" || model.join("config.pbtxt").is_file()).then(|| model.to_owned())
}

fn backend_of(path: &Path) -> Result<&'static str> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if let Some((_, backend)) = MODEL_ENDINGS.iter().find(|(known, _)| *known == ending) {
        return Ok(backend);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let other = OTHER_ENDINGS.iter().find(|(endings, _)| endings.contains(&ending.as_str()));
    let advice = match (foreign_file(&name), other) {
        (Some(file), _) => format!("it is {}; {}", file.what, file.advice),
        (None, Some((_, advice))) => (*advice).to_owned(),
        (None, None) => "it is not a known kind of model file".to_owned(),
    };
    bail!(
        "'{}' cannot be served: {advice}. Model files are .onnx (ONNX), .pt (TorchScript), .pt2 (AOTInductor package), \
         .savedmodel, .graphdef and .pb (TensorFlow), .xml (OpenVINO) and .py (a class TritonPythonModel)",
        path.display()
    )
}

/// Returns the last part of a path as a model name.
fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().unwrap_or_default();
    let is_plain = |c: char| !c.is_control() && c != '\\';
    match name.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_plain) => Ok(text.to_owned()),
        _ => bail!(
            "'{}' cannot be the name of a model: give the file or folder another name",
            name.to_string_lossy()
        ),
    }
}

/// Returns the name of a file as a model name that needs no escapes in a URL.
fn stem_of(file: &Path) -> Result<String> {
    let name = name_of(Path::new(file.file_stem().unwrap_or_default()))?;
    let in_url = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    Ok(name.chars().map(in_url).collect())
}

fn missing(path: &Path) -> anyhow::Error {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let entries = fs::read_dir(parent.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).take(10_000).collect();
    let near = suggest::nearest(&name, names.iter().map(String::as_str)).first().copied();
    let near = near.map(|near| parent.map_or(near.into(), |parent| parent.join(near)));
    let near = near.map(|near: PathBuf| format!("; did you mean '{}'?", near.display()));
    anyhow!(
        "there is no '{}'. Name a model repository, the folder of one model, or a model file ({ENDINGS}){}",
        path.display(),
        near.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(given: &Path) -> Vec<String> {
        let mut names = open(given).expect("served").model_names().expect("listed");
        names.sort();
        names
    }

    fn refusal(given: &Path) -> String {
        open(given).expect_err("refused").to_string()
    }

    #[test]
    fn repositories_model_folders_and_files_are_told_apart() {
        let home = tempfile::tempdir().expect("folder");
        let at = |path: &str| home.path().join(path);
        for file in [
            "repo/iris/1/model.onnx",
            "repo/b/config.pbtxt",
            "numbers/1/1/model.py",
            "numbers/2/1/model.py",
            "flat/iris.onnx",
            "flat2/a.onnx",
            "flat2/b.onnx",
            "named/m/1/own.onnx",
            "clone/.git/x",
            "clone/iris.py",
            "script/model.py",
            "script/part.py",
            "with_config/config.pbtxt",
            "with_config/net.onnx",
            "my model (1).v2.onnx",
            "saved/saved_model.pb",
            "saved/variables/variables.index",
            "net.savedmodel/saved_model.pb",
            "flat3/net.savedmodel/saved_model.pb",
            "repo2/tf/1/model.savedmodel/saved_model.pb",
            "net.graphdef",
        ] {
            fs::create_dir_all(at(file).parent().expect("folder")).expect("folder");
            fs::write(at(file), "").expect("file");
        }
        fs::create_dir(at("empty")).expect("folder");
        let cases: [(&str, &[&str]); 23] = [
            ("repo", &["b", "iris"]),
            ("repo/", &["b", "iris"]),
            ("repo/iris", &["iris"]),
            ("repo/b", &["b"]),
            ("repo/b/../iris/.", &["iris"]),
            ("repo/iris/1/model.onnx", &["iris"]),
            ("numbers", &["1", "2"]),
            ("named/m/1/own.onnx", &["own"]),
            ("flat", &["iris"]),
            ("flat2", &[]),
            ("flat2/b.onnx", &["b"]),
            ("clone", &["iris"]),
            ("script", &["script"]),
            ("with_config", &["net"]),
            ("my model (1).v2.onnx", &["my_model__1_.v2"]),
            ("empty", &[]),
            ("saved", &["saved"]),
            ("saved/saved_model.pb", &["saved"]),
            ("net.savedmodel", &["net"]),
            ("flat3", &["net"]),
            ("repo2", &["tf"]),
            ("repo2/tf/1/model.savedmodel", &["tf"]),
            ("net.graphdef", &["net"]),
        ];
        for (path, expected) in cases {
            assert_eq!(models(&at(path)), expected, "{path}");
        }
    }

    #[test]
    fn the_models_of_an_unpacked_archive_are_found() {
        let home = tempfile::tempdir().expect("folder");
        let unpacked = |name: &str, files: &[&str]| {
            let folder = home.path().join(name);
            for file in files {
                let file = folder.join(file);
                fs::create_dir_all(file.parent().expect("folder")).expect("folder");
                fs::write(file, "").expect("file");
            }
            let root = of_unpacked("https://h/x.tar.gz", &folder).expect("served");
            let mut names = root.model_names().expect("listed");
            names.sort();
            names
        };
        assert_eq!(unpacked("several", &["a/config.pbtxt", "b/1/x"]), ["a", "b"]);
        assert_eq!(unpacked("inner", &["models/a/config.pbtxt", "models/b/1/x"]), ["a", "b"]);
        assert_eq!(unpacked("one", &["a/config.pbtxt", "a/1/x"]), ["a"]);
        assert_eq!(unpacked("itself", &["config.pbtxt", "1/x"]), ["itself"]);
        assert_eq!(unpacked("file", &["net/model.onnx"]), ["net"]);
        assert_eq!(unpacked("saved", &["saved_model.pb", "variables/variables.index"]), ["saved"]);
        assert_eq!(unpacked("file2", &["net.onnx"]), ["net"]);
        assert_eq!(backend_of_name("net.onnx"), Ok("onnxruntime"));
        assert!(backend_of_name("net.pkl").expect_err("none").contains("export it to ONNX"));
    }

    #[test]
    fn a_path_that_cannot_be_served_is_reported_with_advice() {
        let home = tempfile::tempdir().expect("folder");
        let write = |name: &str| {
            let path = home.path().join(name);
            fs::write(&path, "").expect("file");
            path
        };
        for (name, advice) in [
            ("a.pkl", "export it to ONNX (for scikit-learn with skl2onnx)"),
            ("a.keras", "model.export('model.savedmodel')"),
            ("a.plan", "the ONNX model that it was built from"),
            ("a.engine", "runs on the kind of GPU and with the TensorRT that it was built for"),
            ("a.safetensors", "it is a file of weights; export the model to ONNX"),
            ("a.mar", "docs/migrate-from-torchserve.md"),
            ("config.pbtxt", "name the folder that it is in"),
            ("a.zip", "unpack it"),
            ("a.what", "it is not a known kind of model file"),
            ("a", "it is not a known kind of model file"),
        ] {
            let text = refusal(&write(name));
            assert!(text.contains(advice) && text.contains(name), "{text}");
            assert!(text.contains("Model files are .onnx"), "{text}");
        }
        for (folder, inner, expected) in [
            ("hub", "model.safetensors", "optimum-cli export onnx --model"),
            ("hub2", "onnx/model.onnx", "hub2/onnx/model.onnx"),
        ] {
            fs::create_dir_all(home.path().join(folder).join("onnx")).expect("folder");
            fs::write(home.path().join(folder).join(inner), "").expect("file");
            assert!(open(&home.path().join(folder)).is_ok(), "no configuration of a hub");
            fs::write(home.path().join(folder).join("config.json"), "{}").expect("file");
            let text = refusal(&home.path().join(folder));
            assert!(text.contains("a checkpoint of a hub") && text.contains(expected), "{text}");
            fs::create_dir_all(home.path().join(folder).join("m/1")).expect("folder");
            assert!(open(&home.path().join(folder)).is_ok(), "a repository");
        }
        write("iris.onnx");
        let text = refusal(&home.path().join("irsi.onnx"));
        let near = format!("did you mean '{}'?", home.path().join("iris.onnx").display());
        assert!(text.starts_with("there is no '") && text.ends_with(&near), "{text}");
        assert!(refusal(Path::new("/dev/null")).ends_with("it is neither a folder nor a file"));
        assert!(refusal(&write("a\nb.onnx")).contains("cannot be the name of a model"));
    }
}

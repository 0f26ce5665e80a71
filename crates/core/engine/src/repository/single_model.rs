//! A repository that is one model on this machine: its folder, or one file (a folder for a SavedModel).

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_types::Result;
use tempfile::TempDir;

use super::{
    config_name::CONFIG_FILE,
    error::{no_stat, unreadable_model},
    root::{FolderLease, RepositoryRoot},
    snapshot::FolderSnapshot,
    text_file::read_text_file,
};

/// The file that a SavedModel's folder has.
pub const SAVED_MODEL_FILE: &str = "saved_model.pb";

/// A repository of one model. Nothing is copied.
#[derive(Debug)]
pub struct SingleModelRoot {
    /// The place as it was given.
    place: PathBuf,
    model: String,
    files: Files,
}

#[derive(Debug)]
enum Files {
    /// A model's folder as in a repository.
    Folder(PathBuf),
    /// One file, which is the model's first version.
    File { path: PathBuf, backend: &'static str },
}

impl SingleModelRoot {
    /// Creates the repository of a model's folder. `place` is as given, `folder` is the folder it means.
    pub fn of_folder(
        place: impl Into<PathBuf>,
        folder: impl Into<PathBuf>,
        model: impl Into<String>,
    ) -> Arc<dyn RepositoryRoot> {
        let files = Files::Folder(folder.into());
        Arc::new(Self { place: place.into(), model: model.into(), files })
    }

    /// Creates the repository of a model's file, which `backend` runs unless a `config.pbtxt` beside it names another.
    pub fn of_file(
        place: impl Into<PathBuf>,
        file: impl Into<PathBuf>,
        model: impl Into<String>,
        backend: &'static str,
    ) -> Arc<dyn RepositoryRoot> {
        let files = Files::File { path: file.into(), backend };
        Arc::new(Self { place: place.into(), model: model.into(), files })
    }
}

impl RepositoryRoot for SingleModelRoot {
    fn check(&self) -> Result<()> {
        let path = match &self.files {
            Files::Folder(path) | Files::File { path, .. } => path,
        };
        path.metadata().map(drop).map_err(|source| no_stat(&self.place(), source))
    }

    fn place(&self) -> String {
        self.place.display().to_string()
    }

    fn path_of(&self, _: &str, inside: &str) -> Option<PathBuf> {
        let (file, folder) = match &self.files {
            Files::Folder(_) if self.place.is_dir() => return Some(self.place.join(inside)),
            Files::Folder(folder) => {
                // A file in a version was given.
                let is_it = |path: &&Path| path.file_name() == folder.file_name() && path.is_dir();
                let given = self.place.ancestors().find(is_it).unwrap_or(folder);
                return Some(given.join(inside));
            }
            // The given folder may contain the model's file, or be it.
            Files::File { path, .. } if path.file_name() == self.place.file_name() => {
                (&self.place, self.place.parent().unwrap_or(Path::new("")))
            }
            Files::File { path, .. } => (path, &*self.place),
        };
        Some(match inside.strip_prefix("1/") {
            Some(name) => folder.join(name),
            None if inside == CONFIG_FILE => folder.join(CONFIG_FILE),
            None => file.clone(),
        })
    }

    /// Returns the name of the file, because a configuration beside it may be that of another model.
    fn new_name(&self) -> Option<&str> {
        matches!(self.files, Files::File { .. }).then_some(self.model.as_str())
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        Ok([self.model.clone()].into_iter().filter(|model| self.holds(model)).collect())
    }

    fn holds(&self, model: &str) -> bool {
        let is_there = match &self.files {
            Files::Folder(folder) => folder.is_dir(),
            Files::File { path, .. } => path.exists(),
        };
        model == self.model && is_there
    }

    fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        match &self.files {
            _ if model != self.model => Err(io::ErrorKind::NotFound.into()),
            Files::Folder(folder) => read_text_file(&folder.join(file)),
            Files::File { path, backend } if file == CONFIG_FILE => configuration(path, backend),
            Files::File { .. } => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn snapshot(&self, _: &str) -> io::Result<FolderSnapshot> {
        match &self.files {
            Files::Folder(folder) => FolderSnapshot::of(folder),
            Files::File { path, .. } => {
                FolderSnapshot::of_files([("1", &changing(path)), (CONFIG_FILE, &beside(path))])
            }
        }
    }

    fn lease(&self, model: &str) -> Result<FolderLease> {
        match &self.files {
            Files::Folder(folder) => Ok(FolderLease::new(folder.clone())),
            Files::File { path, backend } => {
                let folder = linked_folder(path, backend)
                    .map_err(|source| unreadable_model(model, source))?;
                Ok(FolderLease::new(folder))
            }
        }
    }
}

/// Returns the file that changes with each save: of a SavedModel, which is a folder, the file written at every save.
fn changing(model: &Path) -> PathBuf {
    if model.is_dir() { model.join(SAVED_MODEL_FILE) } else { model.to_owned() }
}

/// Returns the path of a configuration beside a model's file.
fn beside(file: &Path) -> PathBuf {
    file.with_file_name(CONFIG_FILE)
}

/// Creates a model's folder as in a repository, whose version is a link to the folder of the file. So weights, modules and
/// requirements beside the file are in the places that the model expects.
fn linked_folder(file: &Path, backend: &str) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("galatea-model-").tempdir()?;
    let parent = file.parent().unwrap_or(Path::new("/"));
    symlink(parent, folder.path().join("1"))?;
    fs::write(folder.path().join(CONFIG_FILE), configuration(file, backend)?)?;
    Ok(folder)
}

/// Returns the configuration beside the file, if there is one, completed.
fn configuration(file: &Path, backend: &str) -> io::Result<String> {
    let text = match read_text_file(&beside(file)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(config_of_file(text, &name, backend))
}

/// Completes the configuration of a model that is one file with the names of file and backend, if it has none.
/// They are added at the end, so that lines keep their numbers.
pub fn config_of_file(mut text: String, file: &str, backend: &str) -> String {
    // An invalid configuration stays as it is: the load reports its mistakes.
    let Ok(raw) = galatea_config::parse_text(&text) else { return text };
    if raw.default_model_filename.is_empty() {
        text.push_str(&format!("\ndefault_model_filename: {}", quoted(file)));
    }
    if raw.backend.is_empty() && raw.platform.is_empty() {
        text.push_str(&format!("\nbackend: {}", quoted(backend)));
    }
    text
}

/// Returns a string of the text format.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("\\{other:03o}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_paths_lead_to_the_original_files() {
        let path = |root: Arc<dyn RepositoryRoot>, inside: &str| {
            root.path_of("m", inside).expect("here").display().to_string()
        };
        let file = || SingleModelRoot::of_file("a/m.onnx", "/x/a/m.onnx", "m", "onnxruntime");
        assert_eq!(path(file(), "1/m.onnx"), "a/m.onnx");
        assert_eq!(path(file(), "1/weights"), "a/weights");
        assert_eq!(path(file(), "config.pbtxt"), "a/config.pbtxt");
        assert_eq!(path(file(), ""), "a/m.onnx");
        let here = SingleModelRoot::of_file("m.onnx", "/x/m.onnx", "m", "onnxruntime");
        assert_eq!(path(here, "config.pbtxt"), "config.pbtxt");
        let flat = SingleModelRoot::of_file("a", "/x/a/m.onnx", "m", "onnxruntime");
        assert_eq!(path(flat, "1/m.onnx"), "a/m.onnx");
        let home = tempfile::tempdir().expect("folder");
        let folder = SingleModelRoot::of_folder(home.path(), "/elsewhere", "m");
        assert_eq!(path(folder, "1/x"), home.path().join("1/x").display().to_string());
        let version = SingleModelRoot::of_folder("m/1/model.onnx", "/x/m", "m");
        assert_eq!(path(version, "config.pbtxt"), "/x/m/config.pbtxt");
    }

    #[test]
    fn a_model_folder_is_a_repository_of_one_model() {
        let home = tempfile::tempdir().expect("folder");
        let folder = home.path().join("iris");
        fs::create_dir_all(folder.join("1")).expect("folder");
        fs::create_dir(home.path().join("other")).expect("folder");
        fs::write(folder.join("config.pbtxt"), "backend: 'x'").expect("file");
        let root = SingleModelRoot::of_folder("iris/", &folder, "iris");
        assert_eq!(root.model_names().expect("listed"), ["iris"]);
        assert!(root.check().is_ok() && root.holds("iris") && !root.holds("other"));
        assert_eq!(root.read_text("iris", "config.pbtxt").expect("read"), "backend: 'x'");
        assert_eq!(root.lease("iris").expect("there").path(), folder);
        assert_eq!((root.new_name(), root.place()), (None, "iris/".to_owned()));
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(root.model_names().expect("listed"), [""; 0]);
        assert!(root.check().is_err());
    }

    #[test]
    fn a_model_file_is_version_1_and_is_not_copied() {
        let home = tempfile::tempdir().expect("folder");
        let file = home.path().join("a \"b\".v2.onnx");
        fs::write(&file, "weights").expect("file");
        fs::write(home.path().join("weights.bin"), "").expect("file");
        let root = SingleModelRoot::of_file(&file, &file, "a \"b\".v2", "onnxruntime");
        let lease = root.lease("a \"b\".v2").expect("made");
        let folder = lease.path().to_owned();
        assert_eq!(fs::read_link(folder.join("1")).expect("a link"), home.path());
        assert!(folder.join("1/weights.bin").exists(), "what lies beside the file is there");
        let text = fs::read_to_string(folder.join("config.pbtxt")).expect("made");
        let raw = galatea_config::parse_text(&text).expect("valid");
        assert_eq!(raw.default_model_filename, "a \"b\".v2.onnx");
        assert_eq!(raw.backend, "onnxruntime");
        drop(lease);
        assert!(!folder.exists() && file.exists(), "only the link is removed");
        let first = root.snapshot("a").expect("there");
        assert_eq!(root.snapshot("a").expect("there"), first);
        fs::write(&file, "other weights").expect("file");
        assert_ne!(root.snapshot("a").expect("there"), first);
        fs::remove_file(&file).expect("removed");
        assert!(!root.holds("a \"b\".v2") && root.check().is_err());
    }

    #[test]
    fn a_configuration_beside_a_model_file_is_used_with_its_line_numbers() {
        let home = tempfile::tempdir().expect("folder");
        let file = home.path().join("ä.py");
        fs::write(&file, "").expect("file");
        let root = SingleModelRoot::of_file(&file, &file, "ä", "python");
        let read = || root.read_text("ä", "config.pbtxt").expect("read");
        let with = |text: &str| {
            fs::write(home.path().join("config.pbtxt"), text).expect("file");
            read()
        };
        let alone = galatea_config::parse_text(&read()).expect("valid");
        assert_eq!((&*alone.default_model_filename, &*alone.backend), ("ä.py", "python"));
        let own = "# mine\nbackend: 'mine'\ndefault_model_filename: 'other.py'";
        assert_eq!(with(own), own);
        assert!(with("max_batch_size: 4 # no line break").starts_with("max_batch_size: 4 #"));
        let raw = galatea_config::parse_text(&read()).expect("valid");
        assert_eq!((raw.max_batch_size, &*raw.backend), (4, "python"));
        assert_eq!(with("max_batch_size: {"), "max_batch_size: {", "it is told when it is loaded");
        assert_eq!(root.read_text("ä", "other").expect_err("none").kind(), io::ErrorKind::NotFound);
        assert_eq!(root.new_name(), Some("ä"));
    }
}

//! Checks one model's folder.

use std::path::{Path, PathBuf};

use galatea_backend::relative_inside;
use galatea_config::{ENSEMBLE_PLATFORM, MODEL_FILES, RawModelConfig};

use super::{
    content,
    file_type::{FileType, file_type, file_type_of},
    files::{Entry, EntryKind, entries, kind_of, listed, shown},
    mistake::{LayoutMistake, PlacedMistake},
    root,
};
use crate::repository::{ModelFolder, system_words, version_number};

const CONFIG: &str = "config.pbtxt";

/// Names that people give a configuration, in small letters, besides those that begin with `config.`.
const CONFIG_NAMES: [&str; 5] =
    ["model.pbtxt", "config", "configuration.pbtxt", "config_pbtxt", "model_config.pbtxt"];

/// Backends whose models are files with known names; the empty name is that of no backend.
const WITH_FILES: [&str; 4] = ["", "onnxruntime", "pytorch", "python"];

/// A model's folder, and its configuration's settings for the files in it.
pub(crate) struct ModelLayout<'a> {
    folder: &'a ModelFolder,
    /// Empty if nothing names it.
    backend: &'a str,
    /// The `default_model_filename`; empty for that of the backend.
    given_filename: &'a str,
    is_ensemble: bool,
}

impl<'a> ModelLayout<'a> {
    /// Creates the layout from the configuration, as far as it is known.
    pub fn new(folder: &'a ModelFolder, config: Option<&'a RawModelConfig>) -> Self {
        Self {
            folder,
            backend: config.map_or("", |config| &config.backend),
            given_filename: config.map_or("", |config| &config.default_model_filename),
            is_ensemble: config.is_some_and(|config| config.platform == ENSEMBLE_PLATFORM),
        }
    }

    /// Returns why there is no version to load, or no file from which the backend is known.
    pub fn without_version(&self) -> PlacedMistake {
        let folder_is = |kind| move |entry: &&Entry| entry.kind == kind;
        let entries = entries(self.folder.path());
        let named = entries.iter().filter(folder_is(EntryKind::Folder));
        if let Some((entry, number)) =
            named.filter_map(|e| Some((e, meant_number(&e.name)?))).next()
        {
            let folder = shown(&entry.name);
            return self.at(&entry.name, LayoutMistake::VersionName { folder, number });
        }
        let version = |entry: &&Entry| version_number(&entry.name).is_some();
        if let Some(entry) = entries.iter().filter(version).find(folder_is(EntryKind::LostLink)) {
            return self.at(&entry.name, LayoutMistake::LostLink);
        }
        if let Some(entry) = entries.iter().filter(version).find(folder_is(EntryKind::File)) {
            let (name, file) = (entry.name.clone(), self.wanted(None));
            return self.at(&entry.name, LayoutMistake::VersionIsFile { name, file });
        }
        self.beside(&entries).unwrap_or_else(|| {
            let mistake = LayoutMistake::NoVersion {
                model: shown(&self.folder.name),
                file: self.wanted(None),
                is_ensemble: self.is_ensemble,
            };
            self.at("", mistake)
        })
    }

    /// Finds a model's file that is beside the version folders.
    fn beside(&self, entries: &[Entry]) -> Option<PlacedMistake> {
        let (entry, wanted) = entries.iter().find_map(|entry| match file_type(&entry.name) {
            FileType::Model { backend, filename } if self.runs_on(backend) => {
                Some((entry, self.wanted(Some(filename))))
            }
            _ => None,
        })?;
        let target = format!("{}/1/{wanted}", shown(&self.folder.name));
        Some(self.at(&entry.name, LayoutMistake::OutsideVersion { target }))
    }

    fn runs_on(&self, backend: &str) -> bool {
        self.backend.is_empty() || self.backend == backend
    }

    /// Returns why nothing names the backend of the model.
    pub fn without_backend(&self) -> Option<PlacedMistake> {
        if root::is_model_folder(self.folder.path().parent()?) {
            return Some(PlacedMistake::new("", LayoutMistake::OneModel));
        }
        let is_of_config = |oddity: &PlacedMistake| {
            matches!(
                oddity.mistake,
                LayoutMistake::ConfigName { .. } | LayoutMistake::ConfigInVersion { .. }
            )
        };
        if let Some(oddity) = self.oddities().into_iter().find(is_of_config) {
            return Some(oddity);
        }
        match self.folder.versions.first() {
            None => Some(self.without_version()),
            Some(&version) => self.model_file(version),
        }
    }

    /// Returns why the file of a version cannot be the model's; `None` if it can.
    pub fn model_file(&self, version: i64) -> Option<PlacedMistake> {
        // A load request may name any file, and must not reveal files outside of the model.
        let is_inside =
            self.given_filename.is_empty() || relative_inside(self.given_filename).is_some();
        if self.is_ensemble || !is_inside || !WITH_FILES.contains(&self.backend) {
            return None;
        }
        let wanted = self.wanted(None);
        let (folder, at) = (self.folder.version_dir(version), version.to_string());
        let (file, name) = match kind_of(&folder.join(&wanted)) {
            EntryKind::Folder if self.backend == "onnxruntime" => {
                (folder.join(&wanted).join("model.onnx"), format!("{wanted}/model.onnx"))
            }
            _ => (folder.join(&wanted), wanted.clone()),
        };
        match kind_of(&file) {
            EntryKind::File if !self.backend.is_empty() => {
                let content::ForeignContent { mistake, place } =
                    content::mistake(&file, self.backend)?;
                Some(self.at(&format!("{at}/{name}"), mistake).at(place))
            }
            EntryKind::LostLink => Some(self.at(&format!("{at}/{name}"), LayoutMistake::LostLink)),
            EntryKind::Folder | EntryKind::File => None,
            EntryKind::Other if file.symlink_metadata().is_ok() => {
                Some(self.at(&format!("{at}/{name}"), LayoutMistake::NoFile))
            }
            EntryKind::Other => self.missing_file(version, &folder, &wanted),
        }
    }

    fn missing_file(&self, version: i64, folder: &Path, wanted: &str) -> Option<PlacedMistake> {
        if let Err(error) = std::fs::read_dir(folder) {
            let reason = system_words(&error);
            return Some(self.at(&version.to_string(), LayoutMistake::Unreadable { reason }));
        }
        let inner = entries(folder);
        let Some(wanted) = self.looked_for(wanted, &inner) else {
            return Some(self.found_otherwise(version, &inner));
        };
        let at = version.to_string();
        if let Some(file) = wanted.strip_prefix(&format!("{version}/")) {
            let (given, file) = (shown(&wanted), shown(file));
            return Some(self.at(&at, LayoutMistake::NamesVersion { given, file }));
        }
        if inner.is_empty() {
            let beside = self.beside(&entries(self.folder.path()));
            let empty = || self.at(&at, LayoutMistake::EmptyVersion { file: shown(&wanted) });
            return Some(beside.unwrap_or_else(empty));
        }
        let fits = |entry: &&Entry| match file_type(&entry.name) {
            FileType::Model { backend, .. } => {
                entry.kind == EntryKind::File && self.runs_on(backend)
            }
            _ => false,
        };
        let found: Vec<&str> = inner.iter().filter(fits).map(|entry| &*entry.name).collect();
        let fields = |name: &str| self.fields(name, &wanted);
        match found[..] {
            [] => Some(self.found_otherwise(version, &inner)),
            [one] => {
                let (found, fields) = (shown(one), fields(&shown(one)));
                let mistake = LayoutMistake::OtherName { found, wanted: shown(&wanted), fields };
                Some(self.at(&format!("{at}/{one}"), mistake))
            }
            [..] => {
                let (found, fields) = (listed(&found), fields("..."));
                Some(
                    self.at(
                        &at,
                        LayoutMistake::SeveralFiles { found, wanted: shown(&wanted), fields },
                    ),
                )
            }
        }
    }

    /// Returns the name that is searched; without a backend, that of the first model in the folder.
    fn looked_for(&self, wanted: &str, inner: &[Entry]) -> Option<String> {
        if !self.backend.is_empty() || !self.given_filename.is_empty() || inner.is_empty() {
            return Some(wanted.to_owned());
        }
        inner.iter().find_map(|entry| match file_type(&entry.name) {
            FileType::Model { filename, .. } => Some(filename.to_owned()),
            _ => None,
        })
    }

    /// Returns the settings that name a file with another name.
    fn fields(&self, name: &str, wanted: &str) -> String {
        let file = format!("default_model_filename: \"{name}\"");
        match file_type(wanted) {
            FileType::Model { backend, .. } if self.backend.is_empty() => {
                format!("backend: \"{backend}\" and {file}")
            }
            _ => file,
        }
    }

    /// Reports a version with files, of which none is for its backend.
    fn found_otherwise(&self, version: i64, inner: &[Entry]) -> PlacedMistake {
        let wanted = self.wanted(None);
        if let Some(oddity) = self.deeper(version, inner, &wanted) {
            return oddity;
        }
        let folder = self.folder.version_dir(version);
        for entry in inner {
            let (found, backend) = (shown(&entry.name), self.backend.to_owned());
            let mistake = match file_type_of(&folder.join(&entry.name), &entry.name) {
                FileType::Named { backend: fitting } if self.runs_on(fitting) => {
                    let backend = if backend.is_empty() { fitting } else { "" };
                    LayoutMistake::NeedsFilename { found, wanted: wanted.clone(), backend }
                }
                FileType::Model { backend: fitting, .. } | FileType::Named { backend: fitting } => {
                    LayoutMistake::OtherBackend { found, fitting, backend, wanted: wanted.clone() }
                }
                FileType::Foreign(file) => LayoutMistake::NoBackend { found, file },
                FileType::Unknown => continue,
            };
            return self.at(&format!("{version}/{}", entry.name), mistake);
        }
        let names: Vec<&str> = inner.iter().map(|entry| &*entry.name).collect();
        let found = listed(&names);
        let mistake = match self.backend.is_empty() && self.given_filename.is_empty() {
            true => LayoutMistake::NoModelFile { found },
            false => {
                LayoutMistake::SeveralFiles { found, fields: self.fields("...", &wanted), wanted }
            }
        };
        self.at(&version.to_string(), mistake)
    }

    /// Finds the searched file, or a similar one, in a folder of the version.
    fn deeper(&self, version: i64, inner: &[Entry], wanted: &str) -> Option<PlacedMistake> {
        let folders = inner.iter().filter(|entry| entry.kind == EntryKind::Folder).take(8);
        for folder in folders {
            let path: PathBuf = self.folder.version_dir(version).join(&folder.name);
            let fits = |entry: &&Entry| match file_type(&entry.name) {
                FileType::Model { filename, .. } if self.backend.is_empty() => {
                    entry.name == wanted || entry.name == filename
                }
                FileType::Model { backend, .. } => {
                    entry.name == wanted || backend == self.backend && backend != "python"
                }
                _ => false,
            };
            if let Some(found) = entries(&path).iter().find(fits) {
                let name = if self.backend.is_empty() { &found.name } else { wanted };
                let target = format!("{}/{version}/{}", shown(&self.folder.name), shown(name));
                let place = format!("{version}/{}/{}", folder.name, found.name);
                return Some(self.at(&place, LayoutMistake::TooDeep { target }));
            }
        }
        None
    }

    /// Returns oddities, which do not prevent a load.
    pub fn oddities(&self) -> Vec<PlacedMistake> {
        let entries = entries(self.folder.path());
        let has_config = entries.iter().any(|entry| entry.name == CONFIG);
        let mut found = Vec::new();
        for entry in &entries {
            let mistake = match entry.kind {
                EntryKind::File if !has_config && is_meant_as_config(&entry.name) => {
                    LayoutMistake::ConfigName { found: shown(&entry.name) }
                }
                EntryKind::Folder => match meant_number(&entry.name) {
                    Some(number) => {
                        LayoutMistake::VersionName { folder: shown(&entry.name), number }
                    }
                    None => continue,
                },
                EntryKind::LostLink => LayoutMistake::LostLink,
                _ => continue,
            };
            found.push(self.at(&entry.name, mistake));
        }
        if !has_config {
            let of_version = |version: &i64| {
                let is_there = self.folder.version_dir(*version).join(CONFIG).is_file();
                let target = format!("{}/{CONFIG}", shown(&self.folder.name));
                is_there.then(|| {
                    self.at(
                        &format!("{version}/{CONFIG}"),
                        LayoutMistake::ConfigInVersion { target },
                    )
                })
            };
            found.extend(self.folder.versions.iter().find_map(of_version));
        }
        found
    }

    /// Returns the name of the searched file in a version folder. `guess` is used if nothing names the backend.
    fn wanted(&self, guess: Option<&str>) -> String {
        let of_backend = MODEL_FILES
            .iter()
            .find(|file| file.backend == self.backend && file.filename != "model.graphdef");
        match self.given_filename {
            "" => of_backend.map(|file| file.filename).or(guess).unwrap_or("model.onnx").to_owned(),
            given => given.to_owned(),
        }
    }

    fn at(&self, inside: &str, mistake: LayoutMistake) -> PlacedMistake {
        let path = match inside {
            "" => self.folder.name.clone(),
            inside => format!("{}/{inside}", self.folder.name),
        };
        PlacedMistake::new(shown(&path), mistake)
    }
}

/// Returns the number that a folder's name was meant to be: `v1`, `01`, `version_1`, `1.0`.
fn meant_number(name: &str) -> Option<String> {
    if version_number(name).is_some() {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let prefixes = ["version", "ver", "v"];
    let rest = prefixes.iter().find_map(|prefix| lower.strip_prefix(prefix)).unwrap_or(&lower);
    let digits = rest.trim_start_matches(['_', '-', ' ', '.']);
    let digits = digits.split_once('.').map_or(digits, |(whole, rest)| {
        if rest.bytes().all(|b| b.is_ascii_digit() || b == b'.') { whole } else { digits }
    });
    let number = digits.parse::<u32>().ok()?;
    (!digits.starts_with('+')).then(|| number.to_string())
}

fn is_meant_as_config(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with("config.") || CONFIG_NAMES.contains(&&*lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::FolderLease;

    #[test]
    fn misnamed_version_folders_are_reported() {
        for (name, expected) in [
            ("v1", Some("1")),
            ("V12", Some("12")),
            ("01", Some("1")),
            ("version_3", Some("3")),
            ("version-3", Some("3")),
            ("1.0", Some("1")),
            ("v2.1.0", Some("2")),
            ("1", None),
            ("vocab", None),
            ("v", None),
            ("warmup", None),
            ("+1", None),
            ("1a", None),
        ] {
            assert_eq!(meant_number(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn files_outside_the_model_are_not_reported() {
        let root = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(root.path().join("m/1")).expect("folder");
        std::fs::write(root.path().join("empty"), "").expect("file");
        let folder =
            ModelFolder::open("m", FolderLease::new(root.path().join("m"))).expect("readable");
        let config = |file: &str| RawModelConfig {
            backend: "onnxruntime".to_owned(),
            default_model_filename: file.to_owned(),
            ..RawModelConfig::default()
        };
        for outside in ["../../empty", "/dev/null", "a/../../../empty"] {
            let config = config(outside);
            assert_eq!(ModelLayout::new(&folder, Some(&config)).model_file(1), None, "{outside}");
        }
        let config = config("");
        assert!(ModelLayout::new(&folder, Some(&config)).model_file(1).is_some());
    }

    #[test]
    fn misnamed_configurations_are_reported() {
        for name in [
            "config.pbtext",
            "Config.pbtxt",
            "config.txt",
            "config.pbtxt.txt",
            "config.json",
            "config",
        ] {
            assert!(is_meant_as_config(name), "{name}");
        }
        for name in ["labels.txt", "configs", "model.onnx", "README.md"] {
            assert!(!is_meant_as_config(name), "{name}");
        }
    }
}

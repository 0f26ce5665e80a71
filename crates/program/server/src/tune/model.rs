//! The model to measure: the user's folder, and copies of it with other configurations.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow, bail};
use galatea_config::{RawModelConfig, parse_text, to_text};
use galatea_engine::FolderLease;
use galatea_serve::model_path;
use tempfile::TempDir;

use super::candidate::{self, ONNX_RUNTIME, OPENVINO};
use crate::check::completed_config;

const CONFIG: &str = "config.pbtxt";

/// A model in the user's folder.
#[derive(Debug)]
pub struct TunedModel {
    pub name: String,
    /// Its folder in the form of a repository. For a model of one file it is a folder of links, which lives as long as this.
    folder: FolderLease,
    /// The folder of its configuration file.
    home: PathBuf,
    /// The text of its configuration; `None`: it has none.
    text: Option<String>,
    pub config: RawModelConfig,
    /// The file in the version folder.
    pub file: String,
}

impl TunedModel {
    pub fn open(given: &Path) -> Result<Self> {
        let root = model_path::open(given)?;
        let names = root.model_names().map_err(|error| unreadable(given, error))?;
        let name = match &names[..] {
            [name] => name,
            [] => return Err(no_version(given)),
            _ => bail!(
                "'{}' is a repository of several models: name one model's folder or file",
                given.display()
            ),
        };
        let folder = root.lease(name).map_err(|error| anyhow!("{error}"))?;
        let is_file = root.new_name().is_some();
        let home = match is_file {
            true if given.is_file() => given.parent().unwrap_or(Path::new("")).to_owned(),
            true => given.to_owned(),
            false => folder.path().to_owned(),
        };
        let read = |path: &Path| match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(path, error)),
        };
        let path = home.join(CONFIG);
        let text = read(&path)?;
        let completed = read(&folder.path().join(CONFIG))?;
        let config = parse_text(completed.as_deref().unwrap_or_default()).map_err(|error| {
            anyhow!("{}: {}", path.display(), galatea_types::Error::from(error))
        })?;
        let file = file_of(folder.path(), &config)?;
        Ok(Self { name: name.clone(), folder, home, text, config, file })
    }

    /// Returns the configuration, completed from the model's file. It stays as written if the file cannot be read without its
    /// library, or not at all; its load then fails.
    pub fn completed(&self) -> RawModelConfig {
        completed_config(self.folder.path(), &self.name).unwrap_or_else(|_| self.config.clone())
    }

    /// Returns a repository with only this model, in this configuration. All other files are links.
    pub fn repository(&self, config: &RawModelConfig) -> io::Result<TempDir> {
        let place = tempfile::Builder::new().prefix("galatea-tune-").tempdir()?;
        let folder = place.path().join(&self.name);
        fs::create_dir(&folder)?;
        for entry in fs::read_dir(self.folder.path())? {
            let entry = entry?;
            if entry.file_name() != CONFIG {
                symlink(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        fs::write(folder.join(CONFIG), to_text(config))?;
        Ok(place)
    }

    /// Returns true if an earlier configuration is kept here, which must not be lost.
    pub fn has_backup(&self) -> bool {
        self.backup().exists()
    }

    pub fn backup(&self) -> PathBuf {
        self.home.join(format!("{CONFIG}.bak"))
    }

    fn writable(&self) -> &Path {
        if self.home.as_os_str().is_empty() { Path::new(".") } else { &self.home }
    }

    /// Replaces the configuration; the old file is kept next to it. `lines`: the fields that differ.
    pub fn write(&self, config: &RawModelConfig, lines: &str) -> io::Result<PathBuf> {
        let path = self.home.join(CONFIG);
        let text = match &self.text {
            None => lines.to_owned(),
            Some(old) => {
                fs::write(self.backup(), old)?;
                edited(old, config, lines)
            }
        };
        let mut file = tempfile::Builder::new().prefix(".config").tempfile_in(self.writable())?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        if let Ok(old) = fs::metadata(&path) {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.persist(&path)?;
        Ok(path)
    }
}

fn unreadable(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow!("cannot read '{}': {error}", path.display())
}

fn no_version(path: &Path) -> anyhow::Error {
    anyhow!("'{}' has no version folder: its model lies in a folder '1'", path.display())
}

/// Returns the model's file in its highest version.
fn file_of(folder: &Path, config: &RawModelConfig) -> Result<String> {
    let version = highest_version(folder).map_err(|error| unreadable(folder, error))?;
    let version = version.ok_or_else(|| no_version(folder))?;
    let given = config.default_model_filename.as_str();
    let usual = match candidate::backend_of(config, given).as_str() {
        ONNX_RUNTIME => "model.onnx",
        OPENVINO => "model.xml",
        "" if version.join("model.xml").exists() => "model.xml",
        "" => "model.onnx",
        other => bail!(
            "the model has the backend '{other}': engines are compared for ONNX models (onnxruntime, openvino)"
        ),
    };
    let file = if given.is_empty() { usual } else { given };
    match version.join(file).exists() {
        true => Ok(file.to_owned()),
        false => bail!("there is no '{}'", version.join(file).display()),
    }
}

fn highest_version(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut found: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        if let Some(number) = number.filter(|_| path.is_dir())
            && found.as_ref().is_none_or(|(highest, _)| number > *highest)
        {
            found = Some((number, path));
        }
    }
    Ok(found.map(|(_, path)| path))
}

/// Returns the old text with the lines replaced, so that comments stay. If that does not give the wanted configuration,
/// returns a text made from it.
fn edited(old: &str, config: &RawModelConfig, lines: &str) -> String {
    const REPLACED: [&str; 3] = ["backend", "platform", "default_model_filename"];
    let is_replaced = |line: &&str| {
        let field = line.trim_start().split([':', ' ']).next().unwrap_or_default();
        REPLACED.contains(&field) && line.matches(['"', '\'']).count() == 2
    };
    let mut text: String =
        old.lines().filter(|line| !is_replaced(line)).map(|l| format!("{l}\n")).collect();
    text.push_str(lines);
    match parse_text(&text) {
        Ok(read) if read == *config => text,
        _ => to_text(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::candidate::candidates;

    fn model(config: Option<&str>, files: &[&str]) -> (TempDir, Result<TunedModel>) {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("m");
        fs::create_dir(&folder).expect("made");
        for file in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, "model").expect("written");
        }
        if let Some(text) = config {
            fs::write(folder.join(CONFIG), text).expect("written");
        }
        let opened = TunedModel::open(&folder);
        (place, opened)
    }

    fn refused(config: Option<&str>, files: &[&str]) -> String {
        model(config, files).1.expect_err("refused").to_string()
    }

    #[test]
    fn the_file_of_the_highest_version_is_found() {
        let (_place, opened) = model(None, &["1/model.xml", "10/model.onnx", "9/model.xml"]);
        let opened = opened.expect("a model");
        assert_eq!((opened.name.as_str(), opened.file.as_str()), ("m", "model.onnx"));
        let named = "platform: 'onnxruntime_onnx' default_model_filename: 'net.onnx'";
        let (_place, opened) = model(Some(named), &["1/net.onnx"]);
        assert_eq!(opened.expect("a model").file, "net.onnx");
        let (_place, opened) = model(Some("backend: 'openvino'"), &["1/model.xml", "1/model.onnx"]);
        assert_eq!(opened.expect("a model").file, "model.xml");
    }

    #[test]
    fn a_model_file_is_accepted_like_by_serve() {
        let place = tempfile::tempdir().expect("folder");
        let file = place.path().join("net.onnx");
        fs::write(&file, "").expect("written");
        let opened = TunedModel::open(&file).expect("a model");
        assert_eq!((opened.name.as_str(), opened.file.as_str()), ("net", "net.onnx"));
        let repository = opened.repository(&opened.config).expect("made");
        assert!(repository.path().join("net/1/net.onnx").is_file());
        let written = opened.write(&opened.config, "backend: \"openvino\"\n").expect("written");
        assert_eq!(written, place.path().join(CONFIG), "beside the file, where serve reads it");
        let text = fs::read_to_string(written).expect("there");
        assert_eq!(text, "backend: \"openvino\"\n");
        fs::write(place.path().join("other.pkl"), "").expect("written");
        let error = TunedModel::open(&place.path().join("other.pkl")).expect_err("no model");
        assert!(error.to_string().contains("pickled"), "{error}");
    }

    #[test]
    fn unsuitable_models_are_named() {
        assert!(refused(None, &["README"]).contains("no version folder"));
        assert!(refused(None, &["1/other.txt"]).ends_with("1/model.onnx'"));
        let python = refused(Some("backend: 'python'"), &["1/model.py"]);
        assert!(python.contains("backend 'python'") && python.contains("ONNX"), "{python}");
        assert!(refused(Some("backend: ["), &["1/model.onnx"]).contains("config.pbtxt"));
        assert!(TunedModel::open(Path::new("/nowhere/m")).is_err());
    }

    #[test]
    fn the_repository_links_to_the_files() {
        let (_place, opened) =
            model(Some("max_batch_size: 4 # most\n"), &["1/model.onnx", "labels.txt"]);
        let opened = opened.expect("a model");
        let openvino =
            candidates(&opened.config, &opened.config, &opened.file, false).pop().expect("two");
        let repository = opened.repository(&openvino.config).expect("made");
        let text = fs::read_to_string(repository.path().join("m/config.pbtxt")).expect("written");
        assert_eq!(parse_text(&text).expect("a configuration"), openvino.config);
        assert!(repository.path().join("m/1/model.onnx").is_file());
        assert!(repository.path().join("m/labels.txt").is_symlink());
    }

    #[test]
    fn comments_are_kept_in_a_written_configuration() {
        let old = "# ours\nplatform: \"onnxruntime_onnx\"\nmax_batch_size: 4 # most\n";
        let (_place, opened) = model(Some(old), &["1/model.onnx"]);
        let opened = opened.expect("a model");
        let openvino =
            candidates(&opened.config, &opened.config, &opened.file, false).pop().expect("two");
        assert!(!opened.has_backup());
        let path = opened.write(&openvino.config, &openvino.lines).expect("written");
        let text = fs::read_to_string(path).expect("written");
        assert!(text.starts_with("# ours\nmax_batch_size: 4 # most\n"), "{text}");
        assert_eq!(parse_text(&text).expect("valid"), openvino.config);
        assert_eq!(fs::read_to_string(opened.backup()).expect("kept"), old);
    }

    #[test]
    fn a_one_line_configuration_is_rewritten() {
        let old = "platform: \"onnxruntime_onnx\" max_batch_size: 4\n";
        let config = parse_text(old).expect("valid");
        let openvino = candidates(&config, &config, "model.onnx", true).pop().expect("three");
        let text = edited(old, &openvino.config, &openvino.lines);
        assert_eq!(parse_text(&text).expect("valid"), openvino.config);
        assert_eq!(openvino.config.max_batch_size, 4);
    }
}

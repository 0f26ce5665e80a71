//! Removes the paths of files on the server from errors that clients read.

use std::{fs, path::Path, sync::Arc};

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_config::{ConfigSource, Diagnostic};
use galatea_types::{Error, Result};

use super::folder::ModelFolder;

/// The replacement of a model's folder in errors.
#[derive(Clone, Debug)]
pub(crate) struct HiddenFolder {
    /// The ways in which the folder may be written, and the model's name. The longest first.
    places: Vec<String>,
    model: String,
    /// Paths in this configuration are no secret.
    configuration: Option<ConfigSource>,
}

impl HiddenFolder {
    pub fn of(folder: &ModelFolder) -> Self {
        let path = folder.path();
        let mut places: Vec<String> = [fs::canonicalize(path).ok(), std::path::absolute(path).ok()]
            .iter()
            .flatten()
            .map(|path| path.as_path())
            .chain([path])
            .filter_map(Path::to_str)
            // A relative name of one part could be anywhere in a text.
            .filter(|place| place.contains('/'))
            .map(|place| place.trim_end_matches('/').to_owned())
            .collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.len()));
        places.dedup();
        Self { places, model: folder.name.clone(), configuration: None }
    }

    /// Keeps paths that the configuration itself names.
    pub fn but_for(self, configuration: ConfigSource) -> Self {
        Self { configuration: Some(configuration), ..self }
    }

    /// Returns the error with the model's name in place of its folder. The original error is its cause, for the log.
    pub fn hide(&self, error: Error) -> Error {
        let text = self.hidden(error.message());
        let found = Diagnostic::of(&error).map(|found| Diagnostic {
            text: self.hidden(&found.text),
            advice: found.advice.as_deref().map(|advice| self.hidden(advice)),
            ..found.clone()
        });
        let hidden = Error::new(error.code(), &*text);
        match found {
            Some(found) if Diagnostic::of(&error) != Some(&found) => hidden.with_source(found),
            _ if text == error.message() => error,
            _ => hidden.with_source(error),
        }
    }

    fn hidden(&self, text: &str) -> String {
        let replace = |text: String, place: &String| text.replace(place.as_str(), &self.model);
        let is_known = |path: &str| self.configuration.as_ref().is_some_and(|c| c.says(path));
        without_folders(&self.places.iter().fold(text.to_owned(), replace), is_known)
    }

    /// Wraps a model, because its errors when instances are started again reach clients too.
    pub fn wrap(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(HidingModel { model, hidden: self })
    }
}

/// Replaces absolute paths on this machine by `.../` and their last part, anywhere in the text: an interpreter, a library, the
/// folder of environments.
fn without_folders(text: &str, is_known: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let opening = out.chars().next_back().unwrap_or(' ');
        let path = match opening {
            '\'' | '"' | '`' => from.split([opening, '\n']).next(),
            '(' | '[' | '=' | ',' => from.split(ENDS).next(),
            c if c.is_whitespace() => from.split(ENDS).next(),
            _ => None,
        };
        let path = path.filter(|path| is_on_this_machine(path) && !is_known(path)).unwrap_or("/");
        match Path::new(path).file_name().and_then(|name| name.to_str()) {
            Some(name) => {
                out.push_str(CUT);
                out.push_str(name);
            }
            None => out.push_str(path),
        }
        rest = from.get(path.len()..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Replaces the folders of a path, so that the rest is not read as a relative path.
const CUT: &str = ".../";

/// The characters that end a path without quotes.
const ENDS: [char; 10] = [' ', '\n', '\t', '\'', '"', ')', ']', ',', ';', ':'];

/// Returns true if the path leads into an existing top folder, so that it is no path of a URL or pointer into JSON.
fn is_on_this_machine(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let top = parts.next().filter(|top| !top.is_empty());
    parts.next().is_some() && top.is_some_and(|top| Path::new("/").join(top).is_dir())
}

struct HidingModel {
    model: Arc<dyn Model>,
    hidden: HiddenFolder,
}

impl Model for HidingModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        self.model.new_instance(spec).map_err(|error| self.hidden.hide(error))
    }

    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        self.model.can_have(instances)
    }

    fn may_answer_later(&self) -> bool {
        self.model.may_answer_later()
    }

    fn computes_on_any_thread(&self) -> bool {
        self.model.computes_on_any_thread()
    }

    fn has_readiness_check(&self) -> bool {
        self.model.has_readiness_check()
    }

    fn is_ready(&self) -> bool {
        self.model.is_ready()
    }

    fn prepare_to_leave(&self) {
        self.model.prepare_to_leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::FolderLease;

    #[test]
    fn the_model_folder_is_shown_as_the_model_name() {
        let root = tempfile::tempdir().expect("folder");
        let real = root.path().join("real");
        fs::create_dir(&real).expect("folder");
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&real, &link).expect("link");
        let folder = ModelFolder::open("m", FolderLease::new(link.clone())).expect("readable");
        let hidden = HiddenFolder::of(&folder);
        let text = format!("'{}/1/a' and {}/b", link.display(), real.display());
        let error = hidden.hide(Error::unavailable(text));
        assert_eq!(error.message(), "'m/1/a' and m/b");
        assert_eq!(error.code(), galatea_types::Code::Unavailable);
        assert!(error.with_causes().contains(&*link.to_string_lossy()), "the log has all of it");
        let found = Diagnostic::error(format!("'{}/1/a'", link.display()));
        let error = hidden.hide(Error::internal("no path").with_source(found));
        assert_eq!(Diagnostic::of(&error).map(|found| &*found.text), Some("'m/1/a'"));
        let other = hidden.hide(Error::internal("no path"));
        assert_eq!(other.with_causes(), "no path");
    }

    #[test]
    fn other_host_paths_are_cut_to_their_last_part() {
        for (text, told) in [
            (
                "no space left: '/tmp/galatea home/envs' has 3 MB free",
                "no space left: '.../envs' has 3 MB free",
            ),
            (
                "At:\n  /usr/lib/python3/json/decoder.py(337): decode",
                "At:\n  .../decoder.py(337): decode",
            ),
            (
                "the interpreter /usr/bin/python3: too old (/usr/bin/x), a=/tmp/b",
                "the interpreter .../python3: too old (.../x), a=.../b",
            ),
            ("'/tmp/unfinished", "'.../unfinished"),
        ] {
            assert_eq!(without_folders(text, |_| false), told);
            assert_eq!(without_folders(text, |_| true), text, "known from the configuration");
        }
        for same in [
            "",
            "/",
            "a/b and / and //",
            "/usr",
            "'/'",
            "http://127.0.0.1/usr/bin/x",
            "config#/input/0/dims",
            "POST /v2/models/m/load",
            "m/1/model.onnx: '/é/ü' \"/",
            "'/usr'",
            "1 / 2 /",
        ] {
            assert_eq!(without_folders(same, |_| false), same);
        }
    }
}

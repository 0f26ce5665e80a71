//! Errors as clients read them: without the places of files on the server.

use std::{fs, path::Path, sync::Arc};

use galatea_backend::{InstanceSpec, Model, ModelInstance};
use galatea_config::Diagnostic;
use galatea_types::{Error, Result};

use super::folder::ModelFolder;

/// What stands in an error in place of a model's folder.
#[derive(Clone, Debug)]
pub(crate) struct HiddenFolder {
    /// The ways in which the folder may be written, and the model's name. The longest first.
    places: Vec<String>,
    model: String,
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
            // A relative name of one part could stand anywhere in a text.
            .filter(|place| place.contains('/'))
            .map(|place| place.trim_end_matches('/').to_owned())
            .collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.len()));
        places.dedup();
        Self { places, model: folder.name.clone() }
    }

    /// The error with the model's name in place of its folder. What it was is its cause: for the log.
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
        self.places.iter().fold(text.to_owned(), replace)
    }

    /// The model, whose errors when instances are made again reach clients too.
    pub fn wrap(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(HidingModel { model, hidden: self })
    }
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

    fn has_readiness_check(&self) -> bool {
        self.model.has_readiness_check()
    }

    fn is_ready(&self) -> bool {
        self.model.is_ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::FolderLease;

    #[test]
    fn the_folder_of_a_model_is_its_name() {
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
}

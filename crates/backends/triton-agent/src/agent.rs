//! An agent for the engine.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_engine::{
    AgentAnswer, AgentContext, FolderLease, LoadEvent, LoadFollower, RepositoryAgent,
};
use galatea_types::Result;

use crate::{library::OpenAgent, model::AgentModel, state::Action};

/// An agent whose library is open.
#[derive(Debug)]
pub(crate) struct LibraryAgent(pub Arc<OpenAgent>);

impl RepositoryAgent for LibraryAgent {
    fn on_load(&self, context: &AgentContext<'_>) -> Result<AgentAnswer> {
        let model = AgentModel::begin(self.0.clone(), context)?;
        if let Err(error) = model.act(Action::Load) {
            model.tell(Action::LoadFail);
            return Err(error);
        }
        let folder = model
            .replaced()
            .map(|path| FolderLease::new(ReplacedFolder { path, _model: model.clone() }));
        Ok(AgentAnswer { folder, follower: Some(Box::new(Follower(model))) })
    }
}

/// A folder in place of the model's own. The agent keeps it as long as this.
struct ReplacedFolder {
    path: PathBuf,
    _model: Arc<AgentModel>,
}

impl AsRef<Path> for ReplacedFolder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

struct Follower(Arc<AgentModel>);

impl LoadFollower for Follower {
    fn on_event(&self, event: LoadEvent) {
        self.0.tell(match event {
            LoadEvent::LoadComplete => Action::LoadComplete,
            LoadEvent::LoadFail => Action::LoadFail,
            LoadEvent::Unload => Action::Unload,
            LoadEvent::UnloadComplete => Action::UnloadComplete,
        });
    }
}

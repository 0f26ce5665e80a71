//! Plans the models to load, and decides if a ready model stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{model_id::ModelId, overrides::LoadOverrides, repository::FolderSnapshot};

/// The repositories, as planning uses them.
pub(crate) trait RepositoryView {
    /// Returns the models that a name may mean.
    fn named(&self, name: &str) -> Vec<ModelId>;

    /// Returns true if exactly one repository has the model.
    fn holds(&self, id: &ModelId) -> bool;

    /// Returns the names of the models of an ensemble's steps. Empty for all other models, and if the configuration cannot be
    /// read: the load reports why.
    fn steps(&self, id: &ModelId, overrides: &LoadOverrides) -> BTreeSet<Arc<str>>;
}

/// A model to load.
#[derive(Clone, Debug)]
pub(crate) struct LoadRequest {
    pub id: ModelId,
    /// Names of the models of an ensemble's steps; empty for all other models.
    pub steps: BTreeSet<Arc<str>>,
    /// True if the user or a client named it.
    pub is_explicit: bool,
    pub overrides: LoadOverrides,
    /// True if it is loaded again because a model it needs has changed.
    pub is_dependent: bool,
}

/// The models to load, each once.
pub(crate) type Requests = BTreeMap<ModelId, LoadRequest>;

/// Plans to load the named models and the models that they need, at any depth. Of the latter, ready and unchanged ones are
/// not loaded again.
pub(crate) fn with_needs<'a>(
    named: impl IntoIterator<Item = &'a ModelId>,
    overrides: &LoadOverrides,
    repository: &dyn RepositoryView,
) -> Requests {
    let mut requests = Requests::new();
    for id in named {
        add_request(id, overrides.clone(), true, repository, &mut requests);
    }
    requests
}

fn add_request(
    id: &ModelId,
    overrides: LoadOverrides,
    is_explicit: bool,
    repository: &dyn RepositoryView,
    requests: &mut Requests,
) {
    if let Some(request) = requests.get_mut(id) {
        request.is_explicit |= is_explicit;
        return;
    }
    let (id, steps) = (id.clone(), repository.steps(id, &overrides));
    let needed: Vec<_> = steps.iter().flat_map(|step| repository.named(step)).collect();
    let request = LoadRequest { id, steps, is_explicit, overrides, is_dependent: false };
    requests.insert(request.id.clone(), request);
    for needed in needed.iter().filter(|needed| repository.holds(needed)) {
        add_request(needed, LoadOverrides::default(), false, repository, requests);
    }
}

/// Returns true if a load would make the same versions that are ready. `works`: a version is ready and can execute. `loaded`
/// and `now` are the folder at the load and now; `None` if the files came with a request.
///
/// A configuration from an earlier request stays until a file of the model changes.
pub(crate) fn is_current(
    request: &LoadRequest,
    works: bool,
    loaded: Option<&FolderSnapshot>,
    now: Option<&FolderSnapshot>,
) -> bool {
    if request.is_dependent || !request.overrides.is_empty() || !works {
        return false;
    }
    // Only a client that names it wants the repository's files in place of those from a request.
    loaded.is_none() && !request.is_explicit || loaded.is_some() && loaded == now
}

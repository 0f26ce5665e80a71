//! Which models are to be loaded, and whether what is ready of one stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{model_id::ModelId, overrides::LoadOverrides, repository::FolderSnapshot};

/// The repositories, as planning asks them.
pub(crate) trait RepositoryView {
    /// The models that a name may mean.
    fn named(&self, name: &str) -> Vec<ModelId>;

    /// Whether exactly one repository holds the model.
    fn holds(&self, id: &ModelId) -> bool;

    /// Names of the models that an ensemble's steps run on; empty for every other model, and where the configuration cannot
    /// be read: loading it reports why.
    fn steps(&self, id: &ModelId, overrides: &LoadOverrides) -> BTreeSet<Arc<str>>;
}

/// A model to load.
#[derive(Clone, Debug)]
pub(crate) struct LoadRequest {
    pub id: ModelId,
    /// Names of the models of an ensemble's steps; empty for every other model.
    pub steps: BTreeSet<Arc<str>>,
    /// It was named by the user or a client.
    pub is_explicit: bool,
    pub overrides: LoadOverrides,
    /// It is loaded again because a model it needs has changed.
    pub is_dependent: bool,
}

/// The models to load, each once.
pub(crate) type Requests = BTreeMap<ModelId, LoadRequest>;

/// Plans to load the models that somebody named, and what they need, at any depth: of that, what is ready and did not change
/// is left alone.
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

/// Returns whether what is ready of a model is what the request would make. `works`: a version is ready and can execute.
/// `loaded` and `now`: the folder as it was then and is now, `None` where the files came with a request.
///
/// A configuration that came with an earlier request stays until a file of the model changes.
pub(crate) fn is_current(
    request: &LoadRequest,
    works: bool,
    loaded: Option<&FolderSnapshot>,
    now: Option<&FolderSnapshot>,
) -> bool {
    if request.is_dependent || !request.overrides.is_empty() || !works {
        return false;
    }
    // Only a client who names it wants the files of the repository in the place of those that a request brought.
    loaded.is_none() && !request.is_explicit || loaded.is_some() && loaded == now
}

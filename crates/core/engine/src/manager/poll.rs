//! Looking at the repositories now and then: what is new or changed is loaded, what is gone is unloaded.

use std::collections::BTreeSet;

use galatea_types::LockExt;

use super::{
    load::Failures,
    model_manager::ModelManager,
    plan::{PollOutcome, Seen, with_needs},
};
use crate::{model_id::ModelId, overrides::LoadOverrides};

impl ModelManager {
    /// See [`Engine::poll_repositories`](crate::Engine::poll_repositories).
    pub fn poll(&self, retries: bool) -> PollOutcome {
        if self.models().check_serving().is_err() {
            return PollOutcome::Settled;
        }
        let mut looks = self.lock_looks();
        let _look = self.repository.begin_look();
        let seen = self.look();
        let (gone, not_loaded) = {
            let loaded = self.dependencies.lock_unpoisoned();
            (seen.gone(&loaded), seen.not_loaded(&loaded))
        };
        let settled = looks.settled(not_loaded, retries);
        if settled.is_empty() && gone.is_empty() {
            return looks.outcome();
        }
        gone.iter().for_each(|id| self.drop_model(id));
        let mut requests = with_needs(settled.keys(), &LoadOverrides::default(), &*self.repository);
        // What they need is looked at on its own.
        requests.retain(|id, _| settled.contains_key(id));
        let mut loaded = self.load_all(requests, Failures::new());
        loaded.changed.extend(gone);
        looks.loaded(settled, |id| loaded.failures.contains_key(id));
        self.load_dependents(&loaded.changed, loaded.failures);
        looks.outcome()
    }

    fn look(&self) -> Seen {
        let listing = self.repository.list();
        let folder = |id: &ModelId| Some((id.clone(), self.repository.snapshot(id)?));
        let folders = listing.models.iter().filter_map(folder).collect();
        Seen { folders, models: listing.models, is_complete: listing.is_complete }
    }

    /// Unloads a model that no repository holds any more, or that several hold.
    fn drop_model(&self, id: &ModelId) {
        match self.repository.is_ambiguous(id) {
            true => {
                log::error!(
                    "failed to poll model '{id}': not unique across all model repositories"
                );
            }
            false => log::info!("'{id}' is not in the model repositories any more"),
        }
        self.dependencies.lock_unpoisoned().forget(BTreeSet::from([id.clone()]), false);
        self.loader.unload(id);
        self.loader.forget(id);
        self.loader.lifecycle.removed(id);
    }
}

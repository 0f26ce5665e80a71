//! Looking at the repositories now and then: what is new or changed is loaded, what is gone is unloaded.

use std::collections::{BTreeMap, BTreeSet};

use super::{load_failure::Failures, looks::PollOutcome, model_manager::ModelManager};
use crate::{model_id::ModelId, overrides::LoadOverrides};

impl ModelManager {
    /// See [`Engine::poll_repositories`](crate::Engine::poll_repositories).
    pub fn poll(&self, retries: bool) -> PollOutcome {
        if self.models().check_serving().is_err() {
            return PollOutcome::Settled;
        }
        let mut looks = self.lock_looks();
        let _look = self.repository.begin_look();
        let listing = self.repository.list();
        let present = &listing.models;
        let gone: BTreeSet<ModelId> = match listing.is_complete {
            true => self.dependencies.models().difference(present).cloned().collect(),
            // A repository that cannot be read now has its models still.
            false => BTreeSet::new(),
        };
        let not_loaded = |id: &ModelId| {
            let now = self.repository.snapshot(id)?;
            let is_loaded = self.dependencies.snapshot(id).as_ref() == Some(&now);
            (!is_loaded).then(|| (id.clone(), now))
        };
        let settled = looks.settled(present.iter().filter_map(not_loaded).collect(), retries);
        if settled.is_empty() && gone.is_empty() {
            return looks.outcome();
        }
        gone.iter().for_each(|id| self.drop_model(id));
        let mut requests = BTreeMap::new();
        for id in settled.keys() {
            self.add_request(id, LoadOverrides::default(), true, &mut requests);
        }
        // What they need is looked at on its own.
        requests.retain(|id, _| settled.contains_key(id));
        let mut loaded = self.load_all(requests, Failures::new());
        loaded.changed.extend(gone);
        looks.loaded(settled, &loaded.failures);
        self.load_dependents(&loaded.changed, loaded.failures);
        looks.outcome()
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
        self.dependencies.forget(BTreeSet::from([id.clone()]), false);
        self.loader.unload(id);
        self.loader.forget(id);
        self.loader.lifecycle.removed(id);
    }
}

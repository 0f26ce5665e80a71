//! Implements the planning's view of the repositories.

use std::{collections::BTreeSet, sync::Arc};

use galatea_config::ConfigDraft;

use super::plan::RepositoryView;
use crate::{model_id::ModelId, overrides::LoadOverrides, repository::Repository};

impl RepositoryView for Repository {
    fn named(&self, name: &str) -> Vec<ModelId> {
        Repository::named(self, name)
    }

    fn holds(&self, id: &ModelId) -> bool {
        matches!(self.find(id), Ok(Some(_)))
    }

    fn steps(&self, id: &ModelId, overrides: &LoadOverrides) -> BTreeSet<Arc<str>> {
        let raw = match &overrides.config {
            Some(json) => {
                let read = galatea_config::parse_json(json).ok();
                if read.is_some() && !galatea_config::is_strict_json(json) {
                    log::warn!(
                        "the configuration in the load call of model '{id}' is not strict JSON (names without \
                         quotes, single quotes, or a comma behind the last element), and is read as Triton reads it"
                    );
                }
                read
            }
            None => {
                let text = self.read_config(id);
                text.ok().and_then(|text| galatea_config::parse_text(&text).ok())
            }
        };
        let steps = raw.map(|raw| ConfigDraft::from(raw).step_models()).unwrap_or_default();
        steps.into_iter().map(Arc::from).collect()
    }
}

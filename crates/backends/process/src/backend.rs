//! A backend whose models may run in their own processes.

use std::{collections::BTreeMap, sync::Arc};

use galatea_backend::{Backend, CompletionContext, InstanceAlarm, LoadContext, Model};
use galatea_config::{ConfigDraft, PreferredGroup, parse_json, to_json};
use galatea_types::{LockExt as _, Result};
use galatea_worker::{MemoryRules, wire::kind};
use serde_json::Value;

use crate::{
    isolation::Isolation,
    messages::Subject,
    model::IsolatedModel,
    start::{ARENAS, ChildProgram, identity},
};

/// Constructs the backend in the server's process.
pub type OpenBackend = Box<dyn Fn() -> Result<Arc<dyn Backend>> + Send + Sync>;

/// A wrapper around a backend. Models that ask for isolation run in children, all others in the server.
pub struct ProcessBackend {
    name: String,
    /// Description from which a child constructs the backend.
    description: Value,
    child: ChildProgram,
    open: OpenBackend,
    /// The backend in this process, opened when a model first needs it here.
    here: std::sync::Mutex<Option<Arc<dyn Backend>>>,
}

impl ProcessBackend {
    /// Opens the backend, except when `settings` make isolation the rule: then it is opened here when a model needs it.
    /// `settings`: those of `--backend-config` for it. `description`: passed to [`child::serve`](crate::child::serve).
    ///
    /// # Errors
    /// The errors of `open`, and settings with invalid values.
    pub fn open(
        name: &str,
        settings: &BTreeMap<String, String>,
        description: Value,
        child: ChildProgram,
        open: OpenBackend,
    ) -> Result<Arc<dyn Backend>> {
        let isolation = Isolation::read(&BTreeMap::new(), settings)?;
        let name = name.to_owned();
        let backend = Self { name, description, child, open, here: std::sync::Mutex::default() };
        if !isolation.is_wanted {
            backend.here()?;
        }
        Ok(Arc::new(backend))
    }

    fn here(&self) -> Result<Arc<dyn Backend>> {
        let mut here = self.here.lock_unpoisoned();
        if let Some(backend) = &*here {
            return Ok(backend.clone());
        }
        Ok(here.insert((self.open)()?).clone())
    }

    /// Lets the backend complete the configuration in a child. A file that must not be loaded here must not be read here
    /// either.
    fn complete_in_child(
        &self,
        config: &ConfigDraft,
        context: &CompletionContext<'_>,
        isolation: &Isolation,
    ) -> Result<ConfigDraft> {
        let identity = identity(context.model_name.into(), context.version, None);
        let config = serde_json::from_str(&to_json(config.raw())).unwrap_or_default();
        let subject = Subject::new(&self.description, config, context, isolation, None);
        let alarm = InstanceAlarm::default();
        let mut worker = self.child.start(identity, isolation, alarm, MemoryRules::of(ARENAS))?;
        let subject = serde_json::to_value(subject).unwrap_or_default();
        let completed = worker.request(kind::COMPLETE, &subject)?;
        Ok(parse_json(&completed.to_string())?.into())
    }
}

impl Backend for ProcessBackend {
    fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version of the library in this process, if it is open already.
    fn runtime(&self) -> Option<String> {
        self.here.lock_unpoisoned().as_ref()?.runtime()
    }

    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let isolation = Isolation::read(&config.parameters(), context.backend_config)?;
        match isolation.is_wanted {
            true => self.complete_in_child(&config, context, &isolation),
            false => self.here()?.complete_config(config, context),
        }
    }

    /// Prefers none for a model in a process of its own: that one adds the group when it completes the configuration.
    fn preferred_groups(
        &self,
        config: &ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Vec<PreferredGroup> {
        let isolation = Isolation::read(&config.parameters(), context.backend_config);
        match (isolation, self.here()) {
            (Ok(isolation), Ok(backend)) if !isolation.is_wanted => {
                backend.preferred_groups(config, context)
            }
            _ => Vec::new(),
        }
    }

    /// Asks the library in this process, which reads no model for that.
    fn can_use_gpus(&self) -> bool {
        self.here().is_ok_and(|backend| backend.can_use_gpus())
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let isolation = Isolation::read(context.config.parameters(), &context.backend_config)?;
        if !isolation.is_wanted {
            return self.here()?.load(context);
        }
        let (description, child) = (self.description.clone(), self.child.clone());
        Ok(Box::new(IsolatedModel::new(context, description, child, isolation)?))
    }
}

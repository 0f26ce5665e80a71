//! One load of a model, as an agent knows it (`TRITONREPOAGENT_AgentModel`).

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};

use galatea_config::to_json;
use galatea_engine::AgentContext;
use galatea_triton_c::{Registered, abi, text};
use galatea_types::{LockExt as _, Result};

use crate::{
    library::OpenAgent,
    state::{Action, AgentState, MODELS, ModelState, to_c},
};

/// One load of a model. The agent's last call is made, and acquired folders are removed, when this is dropped.
pub(crate) struct AgentModel {
    agent: Arc<OpenAgent>,
    name: String,
    state: Arc<ModelState>,
    registered: Registered<abi::AgentModel, ModelState>,
}

impl AgentModel {
    /// Lets the agent begin with a load.
    ///
    /// # Errors
    /// The agent's own.
    pub fn begin(agent: Arc<OpenAgent>, context: &AgentContext<'_>) -> Result<Arc<Self>> {
        let pair = |(name, value): (&String, &String)| (text::to_c(name), text::to_c(value));
        let state = Arc::new(ModelState {
            agent: agent.handle().addr(),
            state: AgentState::default(),
            location: to_c(context.folder),
            config: to_json(context.config.raw()),
            parameters: context.parameters.iter().map(pair).collect(),
            changing: Mutex::default(),
        });
        let registered = MODELS.register(state.clone())?;
        let model = Self { agent, name: context.model.to_owned(), state, registered };
        model.agent.begin_model(model.registered.handle())?;
        Ok(Arc::new(model))
    }

    /// Tells the agent of an event.
    ///
    /// # Errors
    /// The agent's own.
    pub fn act(&self, action: Action) -> Result<()> {
        self.state.changing.lock_unpoisoned().action = Some(action);
        self.agent.act(self.registered.handle(), action)
    }

    /// Tells the agent of an event that its error cannot change.
    pub fn tell(&self, action: Action) {
        if let Err(error) = self.act(action) {
            let (name, agent) = (&self.name, self.agent.path().display());
            log::error!(model = *name.as_str(); "the agent '{agent}' of model '{name}' failed at {}: {error}", action.name());
        }
    }

    /// Returns the folder that the agent wants the model to be loaded from.
    pub fn replaced(&self) -> Option<PathBuf> {
        self.state.changing.lock_unpoisoned().replaced.clone()
    }
}

impl Drop for AgentModel {
    fn drop(&mut self) {
        if let Err(error) = self.agent.end_model(self.registered.handle()) {
            let (name, agent) = (&self.name, self.agent.path().display());
            log::error!(model = *name.as_str(); "the agent '{agent}' of model '{name}' failed at its end: {error}");
        }
    }
}

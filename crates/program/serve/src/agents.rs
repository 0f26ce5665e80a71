//! Repository agents in libraries that were made for Triton.

use std::{path::PathBuf, sync::Arc};

use galatea_engine::EngineOptions;
use galatea_triton_agent::AgentLibraries;

/// Triton's folder of repository agents.
pub const DEFAULT_AGENT_DIRECTORY: &str = "/opt/tritonserver/repoagents";

/// Lets configurations name the agents in `directory`. Returns them.
pub(crate) fn add(engine: &mut EngineOptions, directory: PathBuf) -> Arc<AgentLibraries> {
    let agents = Arc::new(AgentLibraries::new(directory));
    let searched = agents.clone();
    engine.agents.search(move |name| searched.open(name));
    agents
}

/// Lets configurations name the agents in `directory`, of which none is opened or called: they are only looked for.
pub fn add_uncalled_agents(engine: &mut EngineOptions, directory: PathBuf) {
    let agents = AgentLibraries::new(directory);
    engine.agents.search(move |name| agents.find(name));
}

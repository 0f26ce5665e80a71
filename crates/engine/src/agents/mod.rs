//! Repository agents: what the files of a model go through before the model is loaded. A configuration names them.

mod checksum;

use std::path::Path;

use galatea_config::{ConfigDraft, RepositoryAgent};
use galatea_types::{Code, Error};

use self::checksum::ChecksumError;

/// The one agent that there is.
const CHECKSUM: &str = "checksum";

/// Why an agent does not let a model pass.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error(
        "unable to find 'libtritonrepoagent_{0}.so' for repo agent '{0}': this server has the agent '{CHECKSUM}' and \
         opens no libraries of others. Remove the agent from 'model_repository_agents' to serve the files as they are"
    )]
    Unknown(String),
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        let code = match &error {
            AgentError::Unknown(_) => Code::InvalidArg,
            AgentError::Checksum(error) => error.code(),
        };
        Self::new(code, error.to_string()).with_source(error)
    }
}

/// Lets every agent that a configuration names look at the model's files, in their order.
pub(crate) fn inspect(config: &ConfigDraft, model_dir: &Path) -> Result<(), AgentError> {
    let agents = config.repository_agents();
    agents.iter().try_for_each(|agent: &RepositoryAgent| match agent.name.as_str() {
        CHECKSUM => Ok(checksum::check(&agent.parameters, model_dir)?),
        _ => Err(AgentError::Unknown(agent.name.clone())),
    })
}

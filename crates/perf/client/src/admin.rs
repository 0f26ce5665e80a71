//! Calls of a tool besides inference.

use galatea_types::Result;

use crate::{
    ModelConfigFacts, ModelIndexEntry, ModelMetadata, ModelStatistics, ServerMetadata,
    grpc::GrpcAdmin, http::HttpAdmin,
};

/// Queries a server about itself and its models, over the target's protocol. Errors keep the server's text.
pub struct Admin {
    pub(crate) kind: AdminKind,
}

pub(crate) enum AdminKind {
    Http(Box<HttpAdmin>),
    Grpc(GrpcAdmin),
}

/// Both protocols have the same calls.
macro_rules! over_either {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match &mut $self.kind {
            AdminKind::Http(admin) => admin.$method($($argument),*).await,
            AdminKind::Grpc(admin) => admin.$method($($argument),*).await,
        }
    };
}

impl Admin {
    /// Name, version and extensions of the server.
    pub async fn server_metadata(&mut self) -> Result<ServerMetadata> {
        over_either!(self, server_metadata())
    }

    /// Whether the server says that it takes inference requests.
    pub async fn is_ready(&mut self) -> Result<bool> {
        over_either!(self, is_ready())
    }

    /// Has the server load a model of its repository, again if it is loaded. `config`: a configuration as JSON in place
    /// of the file's.
    pub async fn load_model(&mut self, model: &str, config: Option<&str>) -> Result<()> {
        over_either!(self, load_model(model, config))
    }

    /// Has the server unload a model, and of an ensemble with `dependents` the models it is made of.
    pub async fn unload_model(&mut self, model: &str, dependents: bool) -> Result<()> {
        over_either!(self, unload_model(model, dependents))
    }

    /// An empty `version` leaves the choice to the server.
    ///
    /// # Errors
    /// Besides the server's: a tensor of a data type that is not known.
    pub async fn model_metadata(&mut self, model: &str, version: &str) -> Result<ModelMetadata> {
        over_either!(self, model_metadata(model, version))
    }

    /// An empty `version` leaves the choice to the server.
    pub async fn model_config(&mut self, model: &str, version: &str) -> Result<ModelConfigFacts> {
        over_either!(self, model_config(model, version))
    }

    /// Of one model, its version if one is given, or with an empty `model` of all.
    pub async fn statistics(&mut self, model: &str, version: &str) -> Result<Vec<ModelStatistics>> {
        over_either!(self, statistics(model, version))
    }

    /// Every version of every model that the server's repositories have.
    ///
    /// # Errors
    /// Besides the server's: that it has no such extension.
    pub async fn repository_index(&mut self) -> Result<Vec<ModelIndexEntry>> {
        over_either!(self, repository_index())
    }

    /// Changes trace settings of one model, or with an empty `model` the server's. `trace_level` may have several
    /// values, everything else has one.
    pub async fn set_trace(&mut self, model: &str, fields: &[(String, Vec<String>)]) -> Result<()> {
        over_either!(self, set_trace(model, fields))
    }

    /// Registers the POSIX shared memory object `key`, from its start, under `name`.
    pub async fn register_system_region(
        &mut self,
        name: &str,
        key: &str,
        byte_size: usize,
    ) -> Result<()> {
        over_either!(self, register_system_region(name, key, byte_size))
    }

    /// An empty `name` unregisters all.
    pub async fn unregister_system_region(&mut self, name: &str) -> Result<()> {
        over_either!(self, unregister_system_region(name))
    }
}

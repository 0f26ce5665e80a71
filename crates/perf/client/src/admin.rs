//! Calls of a tool other than inference.

use std::os::fd::BorrowedFd;

use galatea_types::{Error, Result};

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
    /// Returns name, version and extensions of the server.
    pub async fn server_metadata(&mut self) -> Result<ServerMetadata> {
        over_either!(self, server_metadata())
    }

    /// Returns true if the server accepts inference requests.
    pub async fn is_ready(&mut self) -> Result<bool> {
        over_either!(self, is_ready())
    }

    /// Loads a model of the server's repository, or reloads it. `config`: a configuration as JSON that replaces the file's.
    pub async fn load_model(&mut self, model: &str, config: Option<&str>) -> Result<()> {
        over_either!(self, load_model(model, config))
    }

    /// Unloads a model. With `dependents`, the models of an ensemble are unloaded too.
    pub async fn unload_model(&mut self, model: &str, dependents: bool) -> Result<()> {
        over_either!(self, unload_model(model, dependents))
    }

    /// Returns the metadata of a model. With an empty `version` the server chooses.
    ///
    /// # Errors
    /// Those of the server, or a tensor has an unknown data type.
    pub async fn model_metadata(&mut self, model: &str, version: &str) -> Result<ModelMetadata> {
        over_either!(self, model_metadata(model, version))
    }

    /// Returns the configuration of a model. With an empty `version` the server chooses.
    pub async fn model_config(&mut self, model: &str, version: &str) -> Result<ModelConfigFacts> {
        over_either!(self, model_config(model, version))
    }

    /// Returns the statistics of one model, or of one of its versions; with an empty `model` those of all.
    pub async fn statistics(&mut self, model: &str, version: &str) -> Result<Vec<ModelStatistics>> {
        over_either!(self, statistics(model, version))
    }

    /// Returns every version of every model in the server's repositories.
    ///
    /// # Errors
    /// Those of the server, or it does not have this extension.
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

    /// Registers memory under `name`, from its start, by passing its descriptor. The server needs no name of the memory in the
    /// file system, and keeps it while it is registered.
    ///
    /// # Errors
    /// Those of the server, or the target is not HTTP over a Unix socket.
    pub async fn register_passed_region(
        &mut self,
        name: &str,
        memory: BorrowedFd<'_>,
        byte_size: usize,
    ) -> Result<()> {
        match &mut self.kind {
            AdminKind::Http(admin) => admin.register_passed_region(name, memory, byte_size).await,
            AdminKind::Grpc(_) => Err(Error::unsupported(
                "memory can be passed to a server only over HTTP on a Unix socket",
            )),
        }
    }

    /// Unregisters a region, or all with an empty `name`.
    pub async fn unregister_system_region(&mut self, name: &str) -> Result<()> {
        over_either!(self, unregister_system_region(name))
    }
}

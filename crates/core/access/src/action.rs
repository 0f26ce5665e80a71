//! The actions of clients that need permission.

use crate::role::Role;

/// An action of a client. Every call of every protocol is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'m> {
    /// The server's liveness and readiness.
    Live,
    /// The readiness of this model.
    ModelReady(&'m str),
    /// The readiness of a model that is not known yet: the message names it.
    SomethingReady,
    /// Name, version and extensions of the server.
    ServerMetadata,
    /// The descriptions of the gRPC services.
    Reflection,
    /// The metrics of the server and all models.
    Metrics,
    /// Inference by this model.
    Infer(&'m str),
    /// Inference by a model that is not known yet: the message names it.
    InferSomething,
    /// Metadata, configuration or statistics of this model.
    Read(&'m str),
    /// Information about the models that the client may read.
    ReadSomething,
    /// Information about all models.
    ReadEverything,
    /// Loading or unloading this model, or its trace settings.
    Control(&'m str),
    /// Control of a model that is not known yet.
    ControlSomething,
    /// The settings of the server, and its shared memory regions.
    ControlServer,
}

impl Action<'_> {
    /// Returns the role that the action needs; `None` when any identity may do it.
    pub fn role(&self) -> Option<Role> {
        match self {
            Self::Live | Self::ServerMetadata | Self::Reflection => None,
            Self::ModelReady(_)
            | Self::SomethingReady
            | Self::Read(_)
            | Self::ReadSomething
            | Self::ReadEverything
            | Self::Metrics => Some(Role::Read),
            Self::Infer(_) | Self::InferSomething => Some(Role::Infer),
            Self::Control(_) | Self::ControlSomething | Self::ControlServer => Some(Role::Control),
        }
    }

    /// Returns the models for which the role is needed, in the words of messages.
    pub(crate) fn scope(&self) -> String {
        match self {
            Self::ModelReady(model)
            | Self::Infer(model)
            | Self::Read(model)
            | Self::Control(model) => format!("model '{}'", beginning(model)),
            Self::ReadEverything | Self::Metrics | Self::ControlServer => "all models".to_owned(),
            _ => "any model".to_owned(),
        }
    }
}

/// Most bytes of a client's text that are repeated to it.
const MAX_NAME: usize = 128;

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_NAME)).unwrap_or_default()
}

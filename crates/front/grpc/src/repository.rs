//! The model repository calls: index, load, unload.

use std::collections::BTreeMap;

use galatea_engine::{Engine, LoadOverrides};
use galatea_frontend::{Action, Caller};
use galatea_proto::inference::{
    ModelRepositoryParameter, RepositoryModelLoadRequest, RepositoryModelUnloadRequest,
    model_repository_parameter::ParameterChoice,
};
use galatea_protocol::grpc::{Pieces, count_fields};
use galatea_types::{Buffer, Error, Result};
use prost::Message as _;

use crate::message::Message;

/// The error for invalid requests. Texts are Triton's.
#[derive(Debug, PartialEq, thiserror::Error)]
enum RepositoryError {
    #[error("'repository_name' specification is not supported")]
    RepositoryName,
    #[error("unrecognized load parameter '{key}'.")]
    UnknownLoadParameter { key: String },
    #[error("invalid value type for load parameter '{key}', expected {expected}.")]
    LoadParameter { key: String, expected: &'static str },
    #[error("a load takes {MAX_PARAMETERS} parameters at most, and this one has {count}")]
    TooManyParameters { count: usize },
    #[error("invalid value type for 'unload_dependents' parameter, expected bool_param.")]
    UnloadDependents,
}

impl From<RepositoryError> for Error {
    fn from(error: RepositoryError) -> Self {
        let new = match error {
            RepositoryError::RepositoryName => Error::unsupported,
            _ => Error::invalid_arg,
        };
        new(error.to_string()).with_source(error)
    }
}

type Parameters = BTreeMap<String, ModelRepositoryParameter>;

/// Refuses a repository name: all repositories are searched as one, and a request cannot choose.
pub(crate) fn refuse_repository_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Ok(());
    }
    Err(RepositoryError::RepositoryName.into())
}

const LOAD_PARAMETERS: u32 = 3;
/// The most parameters of a load: the configuration, and the files of one model.
const MAX_PARAMETERS: usize = 4096;

pub(crate) async fn load(engine: &Engine, message: Message, caller: &Caller) -> Result<()> {
    let Message { bytes, memory: _held } = message;
    let (name, overrides) = read_load(bytes)?;
    caller.check(&Action::Control(&name))?;
    engine.control().load(name, overrides).await
}

/// Returns the field that cannot be read, and the reason.
fn fault_of(error: &prost::DecodeError) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to decode Protobuf message: ").unwrap_or(&text).to_owned()
}

/// Reads a load request. The contents of files share the memory of the message.
fn read_load(message: Pieces) -> Result<(String, LoadOverrides)> {
    let count = count_fields(&message, LOAD_PARAMETERS);
    if count > MAX_PARAMETERS {
        return Err(RepositoryError::TooManyParameters { count }.into());
    }
    let request = RepositoryModelLoadRequest::decode(message)
        .map_err(|e| Error::internal(format!("Unable to parse request ({})", fault_of(&e))))?;
    refuse_repository_name(&request.repository_name)?;
    Ok((request.model_name, load_overrides(request.parameters)?))
}

pub(crate) async fn unload(
    engine: &Engine,
    request: RepositoryModelUnloadRequest,
    caller: &Caller,
) -> Result<()> {
    caller.check(&Action::Control(&request.model_name))?;
    refuse_repository_name(&request.repository_name)?;
    let unload_dependents = unload_dependents(&request.parameters)?;
    if unload_dependents {
        // Dependents may be any models.
        caller.check(&Action::ControlServer)?;
    }
    engine.control().unload(request.model_name, unload_dependents).await
}

fn load_overrides(parameters: Parameters) -> Result<LoadOverrides, RepositoryError> {
    let mut overrides = LoadOverrides::default();
    for (key, parameter) in parameters {
        match (key.strip_prefix("file:"), parameter.parameter_choice) {
            (Some(path), Some(ParameterChoice::BytesParam(content))) => {
                overrides.files.insert(path.to_owned(), Buffer::from(content));
            }
            (Some(_), _) => {
                return Err(RepositoryError::LoadParameter { key, expected: "bytes_param" });
            }
            (None, choice) if key == "config" => match choice {
                Some(ParameterChoice::StringParam(config)) => overrides.config = Some(config),
                _ => return Err(RepositoryError::LoadParameter { key, expected: "string_param" }),
            },
            (None, _) => {
                return Err(RepositoryError::UnknownLoadParameter { key });
            }
        }
    }
    Ok(overrides)
}

/// Ignores other parameters, as Triton does.
fn unload_dependents(parameters: &Parameters) -> Result<bool, RepositoryError> {
    match parameters.get("unload_dependents").map(|p| &p.parameter_choice) {
        None => Ok(false),
        Some(Some(ParameterChoice::BoolParam(value))) => Ok(*value),
        Some(_) => Err(RepositoryError::UnloadDependents),
    }
}

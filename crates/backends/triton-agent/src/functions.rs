//! The functions that agents call.

use std::{
    ffi::{CStr, OsStr, c_char, c_void},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    sync::Arc,
};

use galatea_triton_c::{Offer, abi, call, objects::messages};
use galatea_types::{Error, Result};

use crate::state::{AGENTS, MODELS, ModelState};

/// The functions for repository agents.
pub(crate) static FUNCTIONS: Offer =
    Offer { name: "libgalatea-triton-agent.so", functions: OFFERED_FUNCTIONS };

galatea_triton_c::functions_offered! {
    static OFFERED_FUNCTIONS;
    done {
        "TRITONREPOAGENT_ApiVersion" = api_version;
        "TRITONREPOAGENT_ModelRepositoryLocation" = location;
        "TRITONREPOAGENT_ModelRepositoryLocationAcquire" = acquire;
        "TRITONREPOAGENT_ModelRepositoryLocationRelease" = release;
        "TRITONREPOAGENT_ModelRepositoryUpdate" = update;
        "TRITONREPOAGENT_ModelParameterCount" = parameter_count;
        "TRITONREPOAGENT_ModelParameter" = parameter;
        "TRITONREPOAGENT_ModelConfig" = config;
        "TRITONREPOAGENT_ModelState" = model_state;
        "TRITONREPOAGENT_ModelSetState" = set_model_state;
        "TRITONREPOAGENT_State" = agent_state;
        "TRITONREPOAGENT_SetState" = set_agent_state;
    }
    unsupported {}
}

/// A location is a path of this machine (`TRITONREPOAGENT_ARTIFACT_FILESYSTEM`).
const FILESYSTEM: u32 = 0;
/// The only form of configurations.
const CONFIG_VERSION: u32 = 1;

fn find(agent: *const abi::Agent, model: *const abi::AgentModel) -> Result<Arc<ModelState>> {
    AGENTS.get(agent)?;
    let found = MODELS.get(model)?;
    found.check_agent(agent)?;
    Ok(found)
}

fn check_type(artifact: u32) -> Result<()> {
    match artifact {
        FILESYSTEM => Ok(()),
        _ => Err(Error::invalid_arg(
            "Unexpected artifact type, expects 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM'",
        )),
    }
}

/// # Safety
/// Null, or a text that ends with a zero byte.
unsafe fn path_text<'a>(location: *const c_char) -> Result<&'a CStr> {
    match location.is_null() {
        true => Err(Error::invalid_arg("the location is null")),
        // SAFETY: the caller's word.
        false => Ok(unsafe { CStr::from_ptr(location) }),
    }
}

unsafe extern "C" fn api_version(major: *mut u32, minor: *mut u32) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ApiVersion", || {
        let [own_major, own_minor] = abi::AGENT_VERSION;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(major, own_major, "the major version")?;
            call::put(minor, own_minor, "the minor version")
        }
    })
}

unsafe extern "C" fn location(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    artifact: *mut u32,
    location: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelRepositoryLocation", || {
        let model = find(agent, model)?;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(artifact, FILESYSTEM, "the artifact type")?;
            call::put(location, model.location.as_ptr(), "the location")
        }
    })
}

unsafe extern "C" fn acquire(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    artifact: u32,
    location: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelRepositoryLocationAcquire", || {
        check_type(artifact)?;
        let acquired = find(agent, model)?.acquire()?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(location, acquired.as_ptr(), "the location") }
    })
}

unsafe extern "C" fn release(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    location: *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelRepositoryLocationRelease", || {
        // SAFETY: the caller gives a terminated text.
        let location = unsafe { path_text(location) }?.to_owned();
        find(agent, model)?.release(&location)
    })
}

unsafe extern "C" fn update(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    artifact: u32,
    location: *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelRepositoryUpdate", || {
        let model = find(agent, model)?;
        check_type(artifact)?;
        // SAFETY: the caller gives a terminated text.
        let location = unsafe { path_text(location) }?;
        model.replace(PathBuf::from(OsStr::from_bytes(location.to_bytes())))
    })
}

unsafe extern "C" fn parameter_count(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    count: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelParameterCount", || {
        let parameters = find(agent, model)?.parameters.len();
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(count, u32::try_from(parameters).unwrap_or(u32::MAX), "the count") }
    })
}

unsafe extern "C" fn parameter(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    index: u32,
    name: *mut *const c_char,
    value: *mut *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelParameter", || {
        let model = find(agent, model)?;
        let found = usize::try_from(index).ok().and_then(|index| model.parameters.get(index));
        let (own_name, own_value) = found.ok_or_else(|| {
            let text = "index out of range for model parameters";
            Error::invalid_arg(text)
        })?;
        // SAFETY: the caller gives places for the results.
        unsafe {
            call::put(name, own_name.as_ptr(), "the name")?;
            call::put(value, own_value.as_ptr(), "the value")
        }
    })
}

unsafe extern "C" fn config(
    agent: *mut abi::Agent,
    model: *mut abi::AgentModel,
    version: u32,
    config: *mut *mut abi::Message,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelConfig", || {
        let model = find(agent, model)?;
        if version != CONFIG_VERSION {
            return Err(Error::invalid_arg(format!(
                "model configuration version {version} not supported, supported versions are: {CONFIG_VERSION}"
            )));
        }
        let message = messages::give(&model.config)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(config, message, "the configuration") }
    })
}

unsafe extern "C" fn model_state(
    model: *mut abi::AgentModel,
    state: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelState", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, MODELS.get(model)?.state.get(), "the state") }
    })
}

unsafe extern "C" fn set_model_state(
    model: *mut abi::AgentModel,
    state: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_ModelSetState", || {
        MODELS.get(model)?.state.set(state);
        Ok(())
    })
}

unsafe extern "C" fn agent_state(
    agent: *mut abi::Agent,
    state: *mut *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_State", || {
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(state, AGENTS.get(agent)?.get(), "the state") }
    })
}

unsafe extern "C" fn set_agent_state(
    agent: *mut abi::Agent,
    state: *mut c_void,
) -> *mut abi::Error {
    call::answer("TRITONREPOAGENT_SetState", || {
        AGENTS.get(agent)?.set(state);
        Ok(())
    })
}

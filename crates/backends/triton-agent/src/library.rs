//! An open library of an agent.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_triton_c::{
    Library, LibraryKind, Registered, Requirements, abi,
    objects::{OBJECTS, errors},
};
use galatea_types::{Error, Result};

use crate::{
    functions::FUNCTIONS,
    state::{AGENTS, Action, AgentState},
};

/// The only hook that every agent has.
const ACTION: &str = "TRITONREPOAGENT_ModelAction";

/// The libraries of agents.
pub static LIBRARIES: LibraryKind = LibraryKind {
    prefix: "libtritonrepoagent_",
    interface: "TRITONREPOAGENT",
    offered: abi::AGENT_VERSION,
    requirements: Requirements { kind: "Triton repository agent", must_define: &[ACTION] },
    offers: &[&OBJECTS, &FUNCTIONS],
};

type AgentFn = unsafe extern "C" fn(*mut abi::Agent) -> *mut abi::Error;
type ModelFn = unsafe extern "C" fn(*mut abi::Agent, *mut abi::AgentModel) -> *mut abi::Error;
type ActionFn = unsafe extern "C" fn(*mut abi::Agent, *mut abi::AgentModel, u32) -> *mut abi::Error;

/// An agent. Its library and itself stay open as long as the process: models may come at any time.
pub(crate) struct OpenAgent {
    path: PathBuf,
    hooks: Hooks,
    registered: Registered<abi::Agent, AgentState>,
    _library: Library,
}

#[derive(Clone, Copy)]
struct Hooks {
    begin_model: Option<ModelFn>,
    end_model: Option<ModelFn>,
    act: ActionFn,
}

impl OpenAgent {
    /// Opens the library at `path` and lets it begin.
    ///
    /// # Errors
    /// Why the library cannot be opened, or its own error.
    pub fn open(path: &Path) -> Result<Self> {
        let library = LIBRARIES.open(path)?;
        let missing = || Error::internal(format!("'{}' has lost {ACTION}", path.display()));
        // SAFETY: the interface gives the functions of these names these types.
        let (begin, hooks) = unsafe {
            let hooks = Hooks {
                begin_model: library.function("TRITONREPOAGENT_ModelInitialize"),
                end_model: library.function("TRITONREPOAGENT_ModelFinalize"),
                act: library.function(ACTION).ok_or_else(missing)?,
            };
            (library.function::<AgentFn>("TRITONREPOAGENT_Initialize"), hooks)
        };
        let registered = AGENTS.register(Arc::default())?;
        if let Some(begin) = begin {
            // SAFETY: a valid handle.
            errors::result(unsafe { begin(registered.handle()) })?;
        }
        Ok(Self { path: path.to_owned(), hooks, registered, _library: library })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn handle(&self) -> *mut abi::Agent {
        self.registered.handle()
    }

    /// Lets the agent begin with a load.
    ///
    /// # Errors
    /// The agent's own.
    pub fn begin_model(&self, model: *mut abi::AgentModel) -> Result<()> {
        let Some(begin) = self.hooks.begin_model else { return Ok(()) };
        // SAFETY: valid handles.
        errors::result(unsafe { begin(self.handle(), model) })
    }

    /// Tells the agent of an event.
    ///
    /// # Errors
    /// The agent's own.
    pub fn act(&self, model: *mut abi::AgentModel, action: Action) -> Result<()> {
        // SAFETY: valid handles.
        errors::result(unsafe { (self.hooks.act)(self.handle(), model, action.number()) })
    }

    /// Lets the agent end a load.
    ///
    /// # Errors
    /// The agent's own.
    pub fn end_model(&self, model: *mut abi::AgentModel) -> Result<()> {
        let Some(end) = self.hooks.end_model else { return Ok(()) };
        // SAFETY: valid handles.
        errors::result(unsafe { end(self.handle(), model) })
    }
}

impl fmt::Debug for OpenAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAgent({:?})", self.path)
    }
}

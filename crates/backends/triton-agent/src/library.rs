//! An open library of an agent.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_triton_c::{Hook, LibraryKind, Registered, Requirements, abi, objects::OBJECTS};
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

type AgentHook = Hook<(*mut abi::Agent,)>;
type ModelHook = Hook<(*mut abi::Agent, *mut abi::AgentModel)>;
type ActionHook = Hook<(*mut abi::Agent, *mut abi::AgentModel, u32)>;

/// An agent. Its library and itself stay open as long as the process: models may come at any time.
pub(crate) struct OpenAgent {
    path: PathBuf,
    hooks: Hooks,
    registered: Registered<abi::Agent, AgentState>,
}

struct Hooks {
    begin_model: Option<ModelHook>,
    end_model: Option<ModelHook>,
    act: ActionHook,
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
                begin_model: Hook::find(&library, "TRITONREPOAGENT_ModelInitialize"),
                end_model: Hook::find(&library, "TRITONREPOAGENT_ModelFinalize"),
                act: Hook::find(&library, ACTION).ok_or_else(missing)?,
            };
            (AgentHook::find(&library, "TRITONREPOAGENT_Initialize"), hooks)
        };
        let registered = AGENTS.register(Arc::default())?;
        if let Some(begin) = begin {
            // SAFETY: a valid handle.
            unsafe { begin.call((registered.handle(),)) }?;
        }
        Ok(Self { path: path.to_owned(), hooks, registered })
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
        let Some(begin) = &self.hooks.begin_model else { return Ok(()) };
        // SAFETY: valid handles.
        unsafe { begin.call((self.handle(), model)) }
    }

    /// Tells the agent of an event.
    ///
    /// # Errors
    /// The agent's own.
    pub fn act(&self, model: *mut abi::AgentModel, action: Action) -> Result<()> {
        // SAFETY: valid handles.
        unsafe { self.hooks.act.call((self.handle(), model, action.number())) }
    }

    /// Lets the agent end a load.
    ///
    /// # Errors
    /// The agent's own.
    pub fn end_model(&self, model: *mut abi::AgentModel) -> Result<()> {
        let Some(end) = &self.hooks.end_model else { return Ok(()) };
        // SAFETY: valid handles.
        unsafe { end.call((self.handle(), model)) }
    }
}

impl fmt::Debug for OpenAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenAgent({:?})", self.path)
    }
}

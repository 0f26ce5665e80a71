//! The parts of agents and of loads that libraries see.

use std::{
    ffi::{CStr, CString, c_void},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicPtr, Ordering},
    },
};

use galatea_triton_c::{Kind, Table, abi};
use galatea_types::{Error, LockExt as _, Result};
use tempfile::TempDir;

const AGENT: Kind = Kind { number: 52, name: "TRITONREPOAGENT_Agent" };
pub(crate) static AGENTS: Table<abi::Agent, AgentState> = Table::new(AGENT, 1 << 10);

/// The part of an agent that the library sees.
#[derive(Default)]
pub(crate) struct AgentState {
    /// The library's own.
    pub state: AtomicPtr<c_void>,
}

impl AgentState {
    /// Returns the library's own state.
    pub fn get(&self) -> *mut c_void {
        self.state.load(Ordering::Acquire)
    }

    /// Keeps a state for the library.
    pub fn set(&self, state: *mut c_void) {
        self.state.store(state, Ordering::Release);
    }
}

const MODEL: Kind = Kind { number: 53, name: "TRITONREPOAGENT_AgentModel" };
pub(crate) static MODELS: Table<abi::AgentModel, ModelState> = Table::new(MODEL, 1 << 18);
/// Most folders that an agent may have for one load.
const MOST_ACQUIRED: usize = 64;

/// The stages of a load, by their numbers in the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Load,
    LoadComplete,
    LoadFail,
    Unload,
    UnloadComplete,
}

impl Action {
    pub fn number(self) -> u32 {
        self as u32
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "TRITONREPOAGENT_ACTION_LOAD",
            Self::LoadComplete => "TRITONREPOAGENT_ACTION_LOAD_COMPLETE",
            Self::LoadFail => "TRITONREPOAGENT_ACTION_LOAD_FAIL",
            Self::Unload => "TRITONREPOAGENT_ACTION_UNLOAD",
            Self::UnloadComplete => "TRITONREPOAGENT_ACTION_UNLOAD_COMPLETE",
        }
    }
}

/// The part of a load that the library sees. Texts keep their addresses as long as this.
pub(crate) struct ModelState {
    /// The handle of the agent that it belongs to, as a number.
    pub agent: usize,
    pub state: AgentState,
    pub location: CString,
    pub config: String,
    pub parameters: Vec<(CString, CString)>,
    pub changing: Mutex<Changing>,
}

/// The part that changes during the load.
#[derive(Default)]
pub(crate) struct Changing {
    pub action: Option<Action>,
    acquired: Vec<Acquired>,
    pub replaced: Option<PathBuf>,
}

/// An empty folder that the server has made for the agent.
struct Acquired {
    location: Arc<CStr>,
    _folder: TempDir,
}

impl ModelState {
    /// Makes sure that the library names the agent that this belongs to.
    ///
    /// # Errors
    /// It is another one.
    pub fn check_agent(&self, agent: *const abi::Agent) -> Result<()> {
        match agent.addr() == self.agent {
            true => Ok(()),
            false => Err(Error::invalid_arg("the model belongs to another agent")),
        }
    }

    /// Makes an empty folder, and returns its path. The folder is removed with the load at the latest.
    ///
    /// # Errors
    /// `Unavailable` beyond the limit, or the reason of the system.
    pub fn acquire(&self) -> Result<Arc<CStr>> {
        if self.changing.lock_unpoisoned().acquired.len() >= MOST_ACQUIRED {
            let text = format!("the agent has {MOST_ACQUIRED} folders already for this load");
            return Err(Error::unavailable(text));
        }
        let folder = tempfile::Builder::new().prefix("galatea-agent-").tempdir();
        let folder = folder.map_err(|error| {
            Error::internal(format!("no folder can be made for the agent: {error}"))
        })?;
        let location: Arc<CStr> = to_c(folder.path()).into();
        let acquired = Acquired { location: location.clone(), _folder: folder };
        self.changing.lock_unpoisoned().acquired.push(acquired);
        Ok(location)
    }

    /// Removes an acquired folder with its content.
    ///
    /// # Errors
    /// It was not acquired, or was released before.
    pub fn release(&self, location: &CStr) -> Result<()> {
        let released = {
            let mut changing = self.changing.lock_unpoisoned();
            let place = changing.acquired.iter().position(|folder| *folder.location == *location);
            place.map(|place| changing.acquired.swap_remove(place))
        };
        match released {
            Some(_) => Ok(()),
            None => Err(Error::invalid_arg(format!(
                "'{}' is no folder that was acquired for this model",
                location.to_string_lossy()
            ))),
        }
    }

    /// Has the model loaded from another folder.
    ///
    /// # Errors
    /// The load is over.
    pub fn replace(&self, location: PathBuf) -> Result<()> {
        let mut changing = self.changing.lock_unpoisoned();
        match changing.action {
            Some(Action::Load) => {
                changing.replaced = Some(location);
                Ok(())
            }
            other => Err(Error::invalid_arg(format!(
                "location can only be updated during {}, current action type is {}",
                Action::Load.name(),
                other.map_or("not set", Action::name)
            ))),
        }
    }
}

pub(crate) fn to_c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ModelState {
        ModelState {
            agent: 1,
            state: AgentState::default(),
            location: CString::default(),
            config: String::new(),
            parameters: Vec::new(),
            changing: Mutex::default(),
        }
    }

    #[test]
    fn the_location_changes_during_the_load_alone() {
        let state = state();
        let refused = state.replace("/a".into()).expect_err("nothing has begun");
        assert!(refused.message().ends_with("current action type is not set"), "{refused}");
        for action in
            [Action::LoadComplete, Action::LoadFail, Action::Unload, Action::UnloadComplete]
        {
            state.changing.lock_unpoisoned().action = Some(action);
            let refused = state.replace("/a".into()).expect_err("too late");
            assert!(refused.message().ends_with(action.name()), "{refused}");
        }
        state.changing.lock_unpoisoned().action = Some(Action::Load);
        state.replace("/a".into()).expect("now");
        assert_eq!(state.changing.lock_unpoisoned().replaced.as_deref(), Some(Path::new("/a")));
    }

    #[test]
    fn acquired_folders_are_released_once_and_bounded() {
        let state = state();
        let first = state.acquire().expect("a folder");
        let path = PathBuf::from(first.to_str().expect("a text"));
        assert!(path.is_dir());
        std::fs::write(path.join("file"), "").expect("written");
        state.release(&first).expect("acquired");
        assert!(!path.exists());
        assert!(state.release(&first).expect_err("again").message().contains("is no folder that"));
        for _ in 0..MOST_ACQUIRED {
            state.acquire().expect("a folder");
        }
        assert!(state.acquire().expect_err("too many").message().contains("64 folders already"));
    }
}

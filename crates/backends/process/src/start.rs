//! Starts children: the program, its arguments, and its services.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use galatea_backend::InstanceAlarm;
use galatea_types::Result;
use galatea_worker::{
    ArenaLimits, Connection, MemoryRules, Message, Program, Services, WorkLimits, Worker,
    WorkerIdentity, WorkerOptions, wire::ProtocolError,
};

use crate::{
    isolation::{Isolation, START_TIMEOUT},
    variables,
};

/// The program of a child: usually this program itself, in a mode of its own that calls
/// [`child::serve`](crate::child::serve).
#[derive(Clone, Debug)]
pub struct ChildProgram {
    path: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
}

/// Bounds of both arenas, like those of Python workers.
pub(crate) const ARENAS: ArenaLimits = ArenaLimits { initial: 1 << 20, growth: 1 << 20, max: None };

impl ChildProgram {
    /// Makes the program. `variables`: the server's environment. A child gets the part that native libraries may need.
    pub fn new(
        path: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = OsString>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self {
            path: path.into(),
            arguments: arguments.into_iter().collect(),
            variables: variables::for_child(variables),
        }
    }

    /// Starts a child and waits until it is ready.
    pub(crate) fn start(
        &self,
        identity: WorkerIdentity,
        isolation: &Isolation,
        alarm: InstanceAlarm,
        memory: MemoryRules,
    ) -> Result<Worker<NoServices>> {
        Worker::start(WorkerOptions {
            // The child's backend checks and reshapes.
            config: None,
            told_outputs: Arc::default(),
            program: Arc::new(self.program(&identity)),
            identity,
            memory,
            timeout: isolation.timeout,
            timeout_setting: START_TIMEOUT,
            initialization: isolation.load,
            limits: WorkLimits {
                execution: isolation.execution,
                abandoned: isolation.abandoned,
                ..WorkLimits::default()
            },
            services: NoServices,
            alarm,
        })
    }

    /// Returns the program. Model and instance are arguments only so that a list of processes shows them.
    fn program(&self, identity: &WorkerIdentity) -> Program {
        let instance = identity.instance.as_deref().unwrap_or("configuration");
        let shown = [(*identity.model).into(), instance.into()];
        Program {
            role: "program",
            path: self.path.clone(),
            arguments: self.arguments.iter().cloned().chain(shown).collect(),
            variables: self.variables.clone(),
            inherits_variables: false,
            withheld_variables: Vec::new(),
            memory_limit: None,
            sandbox: None,
            description: "isolation".to_owned(),
        }
    }
}

/// Returns the identity of a child. `instance`: `None` for one that completes a configuration.
pub(crate) fn identity(model: Arc<str>, version: i64, instance: Option<String>) -> WorkerIdentity {
    WorkerIdentity { role: "isolated process", model, version, instance }
}

/// No services: native models ask nothing of the server.
pub(crate) struct NoServices;

impl Services for NoServices {
    fn handle(_: &Arc<Connection<Self>>, _: &Message<'_>) -> Result<(), ProtocolError> {
        Err(ProtocolError("its kind is unknown"))
    }

    fn end(&self) {}
}

//! A model version whose instances run in children.

use galatea_backend::{InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{InstanceKind, to_json};
use galatea_types::{Error, Result};
use galatea_worker::{MemoryRules, WorkerInstance, WorkerList, wire::kind};
use serde_json::{Map, Value, json};

use crate::{
    isolation::Isolation,
    messages::{InstancePlace, Subject},
    start::{ARENAS, ChildProgram, NoServices, identity},
};

/// A version to load in a child for each instance. The model's file is read there only.
pub(crate) struct IsolatedModel {
    context: LoadContext,
    description: Value,
    child: ChildProgram,
    isolation: Isolation,
    workers: WorkerList<NoServices>,
}

impl IsolatedModel {
    /// Makes the model. `description`: the backend's, for the child.
    pub fn new(
        context: LoadContext,
        description: Value,
        child: ChildProgram,
        isolation: Isolation,
    ) -> Result<Self> {
        if context.config.is_decoupled() {
            return Err(Error::unsupported(format!(
                "model '{}' is decoupled, and a decoupled model cannot be isolated in a process",
                context.config.name()
            )));
        }
        Ok(Self { context, description, child, isolation, workers: WorkerList::default() })
    }

    /// Returns the message that describes an instance to its child.
    pub fn subject(&self, spec: &InstanceSpec) -> Subject {
        let place = InstancePlace {
            name: spec.name.clone(),
            on_gpu: spec.kind == InstanceKind::Gpu,
            device_id: spec.device_id,
            index: spec.index,
        };
        let (config, context) = (self.config_of(spec), self.context.files());
        Subject::new(&self.description, config, &context, &self.isolation, Some(place))
    }

    /// Returns the configuration with this instance as its only one, so that the backend prepares nothing for others.
    fn config_of(&self, spec: &InstanceSpec) -> Value {
        let config = serde_json::from_str(&to_json(self.context.config.raw()));
        let mut config: Value = config.unwrap_or_default();
        let (kind, gpus) = match spec.kind {
            InstanceKind::Cpu => ("KIND_CPU", vec![]),
            InstanceKind::Gpu => ("KIND_GPU", vec![spec.device_id]),
            InstanceKind::Model => ("KIND_MODEL", vec![]),
        };
        let group = json!({ "name": spec.name, "kind": kind, "count": 1, "gpus": gpus });
        if let Some(fields) = config.as_object_mut() {
            fields.insert("instance_group".to_owned(), json!([group]));
            if spec.group.stands_for_gpus {
                remove_gpu_accelerators(fields);
            }
        }
        config
    }
}

/// Removes GPU accelerators for an instance that runs on the CPU instead of a GPU. The child would reject them.
fn remove_gpu_accelerators(config: &mut Map<String, Value>) {
    let optimization = config.get_mut("optimization").and_then(Value::as_object_mut);
    let accelerators = optimization
        .and_then(|fields| fields.get_mut("execution_accelerators"))
        .and_then(Value::as_object_mut);
    if let Some(accelerators) = accelerators {
        accelerators.remove("gpu_execution_accelerator");
    }
}

impl Model for IsolatedModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let config = &self.context.config;
        let instance = Some(spec.name.clone());
        let mut worker = self.child.start(
            identity(config.name().clone(), self.context.version, instance),
            &self.isolation,
            spec.alarm.clone(),
            MemoryRules::within(ARENAS, &self.context.server.memory),
        )?;
        self.workers.add(&worker.connection);
        let subject = serde_json::to_value(self.subject(spec)).unwrap_or_default();
        worker.request(kind::INIT, &subject)?;
        worker.set_ready()?;
        Ok(Box::new(WorkerInstance::new(config, false, worker)))
    }

    fn prepare_to_leave(&self) {
        self.workers.prepare_to_leave();
    }
}

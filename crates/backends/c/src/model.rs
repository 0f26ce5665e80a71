//! A loaded version of a model.

use std::sync::{Arc, Mutex, Weak};

use galatea_backend::{InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{ModelConfig, to_json};
use galatea_triton_c::objects::metrics;
use galatea_types::{LockExt as _, Result};

use crate::{
    backend_object::OpenBackend,
    instance::CInstance,
    instance_object::InstanceObject,
    model_object::{LoadedModel, ModelParts},
};

/// A version that its library has loaded.
pub(crate) struct CModel {
    config: Arc<ModelConfig>,
    loaded: Arc<LoadedModel>,
    waits: bool,
    instances: Mutex<Vec<Live>>,
}

/// An instance that may have ended.
struct Live {
    object: Weak<InstanceObject>,
    handle: usize,
}

impl CModel {
    /// Lets the library load a version.
    ///
    /// # Errors
    /// Those of the library.
    pub fn load(backend: &Arc<OpenBackend>, context: &LoadContext, waits: bool) -> Result<Self> {
        metrics::export_to(&context.server.metrics);
        let config = &context.config;
        let loaded = LoadedModel::load(
            backend,
            ModelParts {
                name: config.name(),
                version: context.version,
                folder: &context.model_dir,
                config: to_json(config.raw()),
                checked: Some(config),
                server: context.server.clone(),
            },
        )?;
        let (config, loaded) = (config.clone(), Arc::new(loaded));
        Ok(Self { config, loaded, waits, instances: Mutex::default() })
    }
}

impl Model for CModel {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        let instance = CInstance::new(&self.loaded, &self.config, spec, self.waits)?;
        let mut instances = self.instances.lock_unpoisoned();
        instances.retain(|live| live.object.strong_count() > 0);
        instances.push(Live { object: instance.object(), handle: instance.handle().addr() });
        Ok(Box::new(instance))
    }

    /// Libraries may answer from threads of their own.
    fn may_answer_later(&self) -> bool {
        !self.waits
    }

    /// The interface names no thread for executions. A library that may call the server in an execution, and wait for it, executes
    /// on the instance's thread.
    fn computes_on_any_thread(&self) -> bool {
        !self.waits && self.loaded.backend.executes_on_any_thread
    }

    fn has_readiness_check(&self) -> bool {
        self.loaded.backend.hooks.has_readiness_check()
    }

    /// Returns true if every instance is ready.
    fn is_ready(&self) -> bool {
        let handles: Vec<Live> = {
            let instances = self.instances.lock_unpoisoned();
            instances
                .iter()
                .map(|live| Live { object: live.object.clone(), handle: live.handle })
                .collect()
        };
        handles.iter().all(|live| {
            // An instance that ends meanwhile keeps its data until the hook has returned.
            let Some(_held) = live.object.upgrade() else { return true };
            let handle = std::ptr::without_provenance_mut(live.handle);
            self.loaded.backend.hooks.check_readiness(handle).is_ok()
        })
    }
}

//! The traits that a backend implements, and their arguments.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_config::{ConfigDraft, InstanceGroup, InstanceKind, ModelConfig, PreferredGroup};
use galatea_types::{Device, DeviceAllocator, DeviceKind, Result};

use crate::{Batch, Devices, InstanceAlarm, PathRules, Pipeline, ServerAccess};

/// The model version that a backend loads, and its surroundings.
#[derive(Clone, Debug)]
pub struct LoadContext {
    /// The checked configuration.
    pub config: Arc<ModelConfig>,
    /// The version to load.
    pub version: i64,
    /// Folder of the model (labels, warm-up data).
    pub model_dir: PathBuf,
    /// Folder of this version, with the model file.
    pub version_dir: PathBuf,
    /// Settings from `--backend-config`: the global ones, overlaid with this backend's.
    pub backend_config: BTreeMap<String, String>,
    /// The rules for paths in the configuration.
    pub paths: PathRules,
    /// The server around it: other models, model control, metrics.
    pub server: ServerAccess,
    /// The devices whose memory its instances may allocate.
    pub devices: Devices,
}

impl LoadContext {
    /// Returns the memory allocator of the instance's device; `None` if the instance has only host memory.
    pub fn allocator_for(&self, spec: &InstanceSpec) -> Option<&Arc<dyn DeviceAllocator>> {
        let device = Device { kind: DeviceKind::Gpu, index: spec.device_id };
        let on_gpu = spec.kind == InstanceKind::Gpu;
        on_gpu.then(|| self.devices.allocator_of(device)).flatten()
    }
}

/// A kind of model that the server can run. Opened at most once; lives as long as the server.
pub trait Backend: Send + Sync {
    /// Returns the name that configurations use, e.g. `onnxruntime`.
    fn name(&self) -> &str;

    /// Returns name and version of the library that runs its models, e.g. `ONNX Runtime 1.24.1`, for people who look at the
    /// server. The default returns none.
    fn runtime(&self) -> Option<String> {
        None
    }

    /// Completes a configuration from the model file in `version_dir`. Called before the check, and only if
    /// auto-completion is on. The default leaves the configuration as it is.
    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let _ = context;
        Ok(config)
    }

    /// Returns true if its models can run on the GPUs of this machine. If not, a model with `KIND_AUTO` runs on
    /// the CPU. A model that asks for a GPU is still loaded, and [`Backend::load`] reports the reason of the
    /// failure. Called only on machines with GPUs.
    fn can_use_gpus(&self) -> bool {
        true
    }

    /// Returns true if `runtime` of a configuration names this backend: it is the name of Triton's library with it.
    fn has_runtime(&self, runtime: &str) -> bool {
        let own = runtime.strip_prefix("libtriton_").and_then(|rest| rest.strip_suffix(".so"));
        own == Some(self.name())
    }

    /// Returns the `runtime` that a configuration without one gets, which its clients and its model then read. The default
    /// leaves it empty.
    fn default_runtime(&self) -> Option<&str> {
        None
    }

    /// Returns the instance groups for a model whose configuration has none, the most preferred first. The default prefers
    /// none. A failure is told when the model is loaded, not here.
    fn preferred_groups(
        &self,
        config: &ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Vec<PreferredGroup> {
        let _ = (config, context);
        Vec::new()
    }

    /// Loads one version. Errors name the file and the reason. May take long and may block.
    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>>;
}

/// The model that [`Backend::complete_config`] completes a configuration for.
#[derive(Clone, Copy, Debug)]
pub struct CompletionContext<'a> {
    /// The name of the model, which the configuration may leave out.
    pub model_name: &'a str,
    /// Folder of the model.
    pub model_dir: &'a std::path::Path,
    /// The version to complete for.
    pub version: i64,
    /// Folder of the version.
    pub version_dir: &'a std::path::Path,
    /// The settings, as in [`LoadContext`].
    pub backend_config: &'a BTreeMap<String, String>,
    /// The rules for paths, as in [`LoadContext`].
    pub paths: &'a PathRules,
}

/// The instance to create.
#[derive(Clone, Debug)]
pub struct InstanceSpec {
    /// For example `simple_0_1`.
    pub name: String,
    /// The group of the configuration that it belongs to.
    pub group: Arc<InstanceGroup>,
    /// The kind of device that it runs on.
    pub kind: InstanceKind,
    /// GPU index; 0 for CPU instances.
    pub device_id: u32,
    /// Its number among all current instances of the model; from 0 as long as none was added or removed.
    pub index: usize,
    /// The alarm to raise when the instance stops working between executions, or for good.
    pub alarm: InstanceAlarm,
}

/// One loaded version, shared by its instances. `HiddenFolder::wrap` in the engine wraps it and must pass on every method
/// added here.
pub trait Model: Send + Sync {
    /// Creates an instance. Called on the thread that will use it, at the start and after each failure.
    ///
    /// # Errors
    /// The reason why the instance cannot work.
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>>;

    /// Returns true if the model can have all these instances together, as if it had been loaded for them.
    /// Called before instances are added or removed; on false, the version is loaded again.
    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let _ = instances;
        true
    }

    /// Returns true if instances may take requests out of their batch although the model is not decoupled. Each then gets one
    /// response, possibly after `execute` has returned.
    fn may_answer_later(&self) -> bool {
        false
    }

    /// Returns true if instances may execute each batch on another thread: they keep no data on the thread, and do not wait
    /// for work of this server. If executions turn out to be short, the thread that brings a request then executes
    /// it instead of waking another one.
    fn computes_on_any_thread(&self) -> bool {
        false
    }

    /// Returns true if the model checks its readiness itself; most do not.
    fn has_readiness_check(&self) -> bool {
        false
    }

    /// Called when the model is unloaded and gets no more requests. Its requests in progress continue, but abandoned ones need
    /// not.
    fn prepare_to_leave(&self) {}

    /// Runs the model's own readiness check. Called only if it has one. May block as long as the model needs.
    fn is_ready(&self) -> bool {
        true
    }
}

/// One instance of a model. One thread at a time owns it and executes one batch after another: always the same thread, unless
/// its model [computes on any](Model::computes_on_any_thread).
pub trait ModelInstance: Send {
    /// Answers every request of `batch`, each by [`Batch::respond`] or all by [`Batch::fail_all`].
    ///
    /// Runs synchronously. Requests left unanswered get an internal error. After a panic all of them do, and the instance is
    /// dropped and started again.
    ///
    /// Requests of a decoupled model, or of one that may answer later, may instead be taken out with [`Batch::take`] and
    /// answered at any later time.
    fn execute(&mut self, batch: &mut Batch);

    /// Returns the pipeline that hands requests over while another executes, if the instance has one: see [`Pipeline`].
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }
}

//! The traits a backend implements, and what it is given.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use galatea_config::{ConfigDraft, InstanceGroup, InstanceKind, ModelConfig};
use galatea_types::{Device, DeviceAllocator, DeviceKind, Result};

use crate::{Batch, Devices, InstanceAlarm, PathRules, Pipeline, ServerAccess};

/// What a backend is given about the model version it loads.
#[derive(Clone, Debug)]
pub struct LoadContext {
    /// As checked.
    pub config: Arc<ModelConfig>,
    /// The version to load.
    pub version: i64,
    /// Folder of the model (labels, warm-up data).
    pub model_dir: PathBuf,
    /// Folder of this version (the model file lies here).
    pub version_dir: PathBuf,
    /// Settings from `--backend-config`: the global ones, overlaid with this backend's.
    pub backend_config: BTreeMap<String, String>,
    /// Where paths in the configuration may lead.
    pub paths: PathRules,
    /// The server around it: other models, model control, metrics.
    pub server: ServerAccess,
    /// Which devices' memory its instances may allocate.
    pub devices: Devices,
}

impl LoadContext {
    /// Returns what allocates memory of the device that an instance runs on. `None`: it has host memory alone.
    pub fn allocator_for(&self, spec: &InstanceSpec) -> Option<&Arc<dyn DeviceAllocator>> {
        let device = Device { kind: DeviceKind::Gpu, index: spec.device_id };
        let on_gpu = spec.kind == InstanceKind::Gpu;
        on_gpu.then(|| self.devices.allocator_of(device)).flatten()
    }
}

/// A kind of model the server can run. Opened at most once; lives as long as the server.
pub trait Backend: Send + Sync {
    /// The name a configuration uses, e.g. `onnxruntime`.
    fn name(&self) -> &str;

    /// Returns name and version of the library that runs its models, e.g. `ONNX Runtime 1.24.1`, for people who look at the
    /// server. The default has none.
    fn runtime(&self) -> Option<String> {
        None
    }

    /// Fills in what the configuration leaves out by looking at the model file in `version_dir`.
    /// Called before the check, and only when auto-completion is on. The default leaves it as it is.
    fn complete_config(
        &self,
        config: ConfigDraft,
        context: &CompletionContext<'_>,
    ) -> Result<ConfigDraft> {
        let _ = context;
        Ok(config)
    }

    /// Whether its models can run on the GPUs of this machine. Where they cannot, a model that leaves the choice
    /// (`KIND_AUTO`) runs on the CPU; one that asks for a GPU is still loaded, and [`Backend::load`] reports why it
    /// cannot be. Asked only where there are GPUs.
    fn can_use_gpus(&self) -> bool {
        true
    }

    /// Whether it is what `runtime` of a configuration names: the library of this name, which Triton has it in.
    fn has_runtime(&self, runtime: &str) -> bool {
        let own = runtime.strip_prefix("libtriton_").and_then(|rest| rest.strip_suffix(".so"));
        own == Some(self.name())
    }

    /// Loads one version. Errors name the file and the reason. May take long and may block.
    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>>;
}

/// What [`Backend::complete_config`] may look at.
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
    /// As in [`LoadContext`].
    pub backend_config: &'a BTreeMap<String, String>,
    /// As in [`LoadContext`].
    pub paths: &'a PathRules,
}

/// Which instance of a model is to be made.
#[derive(Clone, Debug)]
pub struct InstanceSpec {
    /// E.g. `simple_0_1`.
    pub name: String,
    /// The group of the configuration that it was made for.
    pub group: Arc<InstanceGroup>,
    /// What it is to run on.
    pub kind: InstanceKind,
    /// GPU index; 0 for CPU instances.
    pub device_id: u32,
    /// Its number among all instances of the model that there are; from 0 as long as none came or went.
    pub index: usize,
    /// To be raised when the instance stops working between executions, or for good.
    pub alarm: InstanceAlarm,
}

/// One loaded version, shared by its instances. The engine wraps it (`HiddenFolder::wrap`): a method added here is
/// handed on there.
pub trait Model: Send + Sync {
    /// Makes an executor; called on the thread that will drive it, at start and after each failure.
    ///
    /// # Errors
    /// What keeps it from working, with the reason.
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>>;

    /// Whether it can have these instances, all together, as if it had been loaded for them. Asked before instances come
    /// or go; if it cannot, the version is loaded again.
    fn can_have(&self, instances: &[InstanceSpec]) -> bool {
        let _ = instances;
        true
    }

    /// Whether instances may take requests out of their batch although the model is not decoupled: each then gets one answer,
    /// perhaps after `execute` has returned.
    fn may_answer_later(&self) -> bool {
        false
    }

    /// Whether instances may execute one batch on this thread and the next on another, and do nothing but compute there: they
    /// wait for nobody, and keep nothing on the thread. Where executions turn out to be short, the thread that brings a
    /// request then executes it, instead of waking another one for it.
    fn computes_on_any_thread(&self) -> bool {
        false
    }

    /// Whether the model checks its readiness itself; most do not.
    fn has_readiness_check(&self) -> bool {
        false
    }

    /// The model is being unloaded: no more requests come. Those that it has go on, but what nobody waits for any more need
    /// not.
    fn prepare_to_leave(&self) {}

    /// The model's own check, called only when it has one. May block as long as the model takes to answer.
    fn is_ready(&self) -> bool {
        true
    }
}

/// One executor. Owned by one thread at a time, which calls it with one batch after another: always the same thread, unless
/// its model [computes on any](Model::computes_on_any_thread).
pub trait ModelInstance: Send {
    /// Answers every request of `batch`, each by [`Batch::respond`] or all by [`Batch::fail_all`].
    ///
    /// Runs synchronously. Requests left unanswered get an internal error; so do all of them when this
    /// panics, after which the instance is dropped and started again.
    ///
    /// The requests of a decoupled model, or of one that may answer later, may be taken out with
    /// [`Batch::take`] instead, and answered at any time afterwards.
    fn execute(&mut self, batch: &mut Batch);

    /// How the instance is handed a request while it executes another, where it can be: see [`Pipeline`].
    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        None
    }
}

//! Loads one version of a model: its file, its sessions, its declarations.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, panic,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use galatea_backend::{InstanceSpec, LoadContext};
use galatea_config::{InstanceGroup, InstanceKind, ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use crate::{
    accelerators,
    file_faults::explained,
    header::Header,
    layout::usable_cores,
    ort::{
        ExecutionMode, Library, Provider, ProviderKind, RunOptions, Session, SessionOptions,
        TensorInfo, ValueKind,
    },
    sessions::Sessions,
    settings::Settings,
    signature::{Signature, TensorBinding},
};

/// The processor that computes: the CPU, or one of the GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Device {
    Cpu,
    Gpu(u32),
}

impl Device {
    /// Returns the device of an instance. `KIND_MODEL` leaves it to the model, and an ONNX file does not specify one.
    pub fn of(spec: &InstanceSpec) -> Self {
        match spec.kind {
            InstanceKind::Gpu => Self::Gpu(spec.device_id),
            InstanceKind::Cpu | InstanceKind::Model => Self::Cpu,
        }
    }
}

/// A loaded version. The instances on a device share one session, so each device's memory holds the weights once.
pub(crate) struct OnnxModel {
    pub library: Arc<Library>,
    pub sessions: BTreeMap<Device, Arc<Sessions>>,
    /// True if anything other than the library's own code for CPUs computes.
    pub has_providers: bool,
    /// True if runs may be repeated with kept tensors: only the library itself computes, on the CPU.
    /// the CPU.
    pub may_bind: bool,
    pub run_options: RunOptions,
    pub config: Arc<ModelConfig>,
    pub inputs: Vec<TensorBinding>,
    pub outputs: Vec<TensorBinding>,
}

impl OnnxModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        let settings = Settings::read(context)?;
        let devices = devices(library, &config)?;
        accelerators::check(context, devices.last() > Some(&Device::Cpu))?;
        let path =
            find_model(&context.version_dir, config.default_model_filename(), config.name())?;
        let threads = choose_threads(&settings);
        let mut sessions = BTreeMap::new();
        let (mut signature, mut has_providers) = (None, false);
        for device in devices {
            let providers = providers(library, context, device)?;
            has_providers |= !providers.is_empty();
            let load = |intra_op| {
                let options = session_options(library, &settings, intra_op, &providers)?;
                Session::load(library, &path, options)
                    .map_err(|error| explained(error, &path, &context.files(), &library.version))
            };
            let has_candidates =
                device == Device::Cpu && providers.is_empty() && threads.is_open && is_small(&path);
            let (session, alone) = match has_candidates {
                true => at_once(|| load(threads.intra_op), || load(Some(1)))?,
                false => (load(threads.intra_op)?, None),
            };
            if signature.is_none() {
                let read = signature_of(&session, &path)?;
                read.declaration().check(&config)?;
                signature = Some(read);
            }
            let chosen = match (device, alone) {
                (_, Some(alone)) => Sessions::candidates(session, alone, threads.lets_runs_overlap),
                // Threads that wait for a GPU do not make it faster. Another provider uses threads of its own.
                (Device::Gpu(_), None) => Sessions::one(session, false),
                (Device::Cpu, None) => {
                    Sessions::one(session, providers.is_empty() && threads.lets_runs_overlap)
                }
            };
            sessions.insert(device, Arc::new(chosen));
        }
        let signature = signature.ok_or_else(|| no_instance(&config))?;
        let declared = signature.declaration();
        let outputs = bindings(config.model_outputs(), |name| declared.expect_output(name))?;
        let has_maps = outputs.iter().any(|output| output.info.kind == ValueKind::Maps);
        outputs.iter().for_each(|output| tell_of_maps(output, config.name()));
        Ok(Self {
            library: library.clone(),
            sessions,
            has_providers,
            may_bind: !has_providers && !has_maps && settings.operator_libraries.is_empty(),
            run_options: RunOptions::new(library, &settings.run_entries())?,
            inputs: bindings(config.execution_inputs(), |name| declared.expect_input(name))?,
            outputs,
            config,
        })
    }
}

/// Loads both sessions at the same time.
fn at_once(
    first: impl FnOnce() -> Result<Session>,
    second: impl FnOnce() -> Result<Session> + Send,
) -> Result<(Session, Option<Session>)> {
    thread::scope(|scope| {
        let second = scope.spawn(second);
        let first = first();
        match second.join() {
            Ok(second) => Ok((first?, Some(second?))),
            Err(panic) => panic::resume_unwind(panic),
        }
    })
}

/// Returns the devices of all instances, the CPU first. Returns the CPU if no instance is configured.
fn devices(library: &Arc<Library>, config: &ModelConfig) -> Result<BTreeSet<Device>> {
    let mut devices = BTreeSet::new();
    for group in config.instance_groups() {
        if group.kind == InstanceKind::Gpu {
            check_cuda(library, config, group)?;
            devices.extend(group.gpus.iter().map(|&gpu| Device::Gpu(gpu)));
        } else {
            devices.insert(Device::Cpu);
        }
    }
    if devices.is_empty() {
        devices.insert(Device::Cpu);
    }
    Ok(devices)
}

fn check_cuda(library: &Arc<Library>, config: &ModelConfig, group: &InstanceGroup) -> Result<()> {
    library.cuda().map_err(|cause| no_cuda(config.name(), &group.name, &library.version, cause))
}

/// Returns the error of an instance group for GPUs if this version of ONNX Runtime cannot use them.
fn no_cuda(model: &str, group: &str, version: &str, cause: Error) -> Error {
    Error::invalid_arg(format!(
        "unable to load model '{model}': instance group '{group}' is for GPUs (KIND_GPU), but ONNX Runtime {version} \
         {cause}; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime that can use CUDA here \
         (--onnxruntime-lib names it)"
    ))
    .with_source(cause)
}

fn providers(
    library: &Arc<Library>,
    context: &LoadContext,
    device: Device,
) -> Result<Vec<Provider>> {
    let Device::Gpu(gpu) = device else {
        return Ok(accelerators::cpu_providers(library, context));
    };
    let providers = accelerators::providers(context, gpu)?;
    if providers.iter().any(|provider| provider.kind == ProviderKind::TensorRt) {
        library
            .try_provider(ProviderKind::TensorRt)
            .map_err(|cause| no_tensorrt(context.config.name(), &library.version, cause))?;
    }
    Ok(providers)
}

fn no_tensorrt(model: &str, version: &str, cause: Error) -> Error {
    Error::invalid_arg(format!(
        "unable to load model '{model}': it asks for Execution Accelerator 'tensorrt', but ONNX Runtime {version} {cause}"
    ))
    .with_source(cause)
}

pub(crate) fn no_instance(config: &ModelConfig) -> Error {
    Error::internal(format!("model '{}' has no instance anywhere", config.name()))
}

fn bindings<'s>(
    specs: &[TensorSpec],
    find: impl Fn(&str) -> Result<&'s TensorInfo>,
) -> Result<Vec<TensorBinding>> {
    specs
        .iter()
        .map(|s| Ok(TensorBinding { spec: s.clone(), info: find(&s.name)?.clone() }))
        .collect()
}

/// Returns the inputs and outputs of the model in the file `path`.
pub(crate) fn signature_of(session: &Session, path: &Path) -> Result<Signature> {
    let mut signature = Signature::read(session)?;
    Header::open_ranks(&mut signature, path);
    Ok(signature)
}

fn tell_of_maps(output: &TensorBinding, model: &str) {
    if output.info.kind == ValueKind::Maps {
        log::warn!(
            "model '{model}': output '{}' is a list of maps (ZipMap), and is served as a tensor of FP32: a row for each map, a \
             column for each key in ascending order. scikit-learn exports such a tensor itself with convert_sklearn(..., \
             options={{'zipmap': False}})",
            output.spec.name
        );
    }
}

/// Finds the model's file. A folder of that name contains it together with its weights.
pub(crate) fn find_model(version_dir: &Path, filename: &str, model: &str) -> Result<PathBuf> {
    let filename = if filename.is_empty() { "model.onnx" } else { filename };
    let mut path = version_dir.join(filename);
    let is_folder = path.is_dir();
    if is_folder {
        path.push("model.onnx");
    }
    if path.is_file() {
        return Ok(path);
    }
    let path = path.display();
    // The texts are Triton's.
    Err(match is_folder {
        true => Error::unavailable(format!("unable to find '{path}' for model instance '{model}'")),
        false => Error::internal(format!("failed to stat file {path}")),
    })
}

/// Setting by which threads spin only while a run is in progress.
const SPINNING_STOP: &str = "session.force_spinning_stop";
/// Time that the helpers of a session look for work before they sleep, also in a new session. The library's default takes 25
/// ms of a core, so a thousand small models would spin for half a minute while they load. Between operators 100 us are
/// enough: `docs/adr/0003-onnx-thread-layout.md`.
const SPIN_DURATION: (&str, &str) = ("session.intra_op.spin_duration_us", "100");
/// Largest model that gets two sessions while the server measures which is better.
const SMALL_MODEL_BYTES: u64 = 16 << 20;

/// Returns true if the model's folder with its weights is small enough to load twice for a while.
fn is_small(model: &Path) -> bool {
    let Some(entries) = model.parent().and_then(|dir| dir.read_dir().ok()) else { return false };
    let sizes = entries.map(|entry| {
        let metadata = fs::metadata(entry.ok()?.path()).ok()?;
        // An inner folder may contain weights of any size.
        metadata.is_file().then_some(metadata.len())
    });
    sizes.sum::<Option<u64>>().is_some_and(|total| total <= SMALL_MODEL_BYTES)
}

/// The number of a session's threads, and their use.
#[derive(Clone, Copy)]
struct Threads {
    intra_op: Option<i32>,
    lets_runs_overlap: bool,
    /// True if no number is configured, so one thread may turn out to be enough.
    is_open: bool,
}

/// Uses the numbers in the configuration. Without them the session gets every core, and overlapping runs are kept apart (see
/// [`RunPlacement`]).
fn choose_threads(settings: &Settings) -> Threads {
    let is_chosen = settings.intra_op_threads.is_some()
        || settings.uses_global_threads
        || settings.execution_mode == Some(ExecutionMode::ORT_PARALLEL);
    if is_chosen {
        let intra_op = settings.intra_op_threads;
        return Threads { intra_op, lets_runs_overlap: false, is_open: false };
    }
    let cores = i32::try_from(usable_cores()).unwrap_or(1);
    let has_helpers = cores > 1;
    Threads { intra_op: Some(cores), lets_runs_overlap: has_helpers, is_open: has_helpers }
}

fn session_options(
    library: &Arc<Library>,
    settings: &Settings,
    intra_op: Option<i32>,
    providers: &[Provider],
) -> Result<SessionOptions> {
    let mut options = SessionOptions::new(library)?;
    providers.iter().try_for_each(|provider| options.provider(provider))?;
    if settings.uses_global_threads {
        options.use_global_threads()?;
    } else {
        intra_op.map_or(Ok(()), |n| options.intra_op_threads(n))?;
        settings.inter_op_threads.map_or(Ok(()), |n| options.inter_op_threads(n))?;
    }
    settings.execution_mode.map_or(Ok(()), |mode| options.execution_mode(mode))?;
    settings.graph_level.map_or(Ok(()), |level| options.graph_level(level))?;
    settings.memory_arena.map_or(Ok(()), |on| options.memory_arena(on))?;
    settings.memory_pattern.map_or(Ok(()), |on| options.memory_pattern(on))?;
    // Otherwise the threads of every model spin for a while after its last run.
    options.entry(SPINNING_STOP, "1")?;
    options.entry(SPIN_DURATION.0, SPIN_DURATION.1)?;
    for (key, value) in &settings.session_entries {
        options.entry(key, value)?;
    }
    let paths: BTreeSet<_> = settings.operator_libraries.iter().collect();
    paths.into_iter().try_for_each(|path| options.custom_operators(path))?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use galatea_types::Code;

    use super::*;

    #[test]
    fn what_the_library_lacks_is_named_after_it() {
        let cause = || Error::unavailable("was built without X");
        let error = no_cuda("m", "m_0", "1.23", cause());
        assert_eq!(
            (error.code(), error.message()),
            (
                Code::InvalidArg,
                "unable to load model 'm': instance group 'm_0' is for GPUs (KIND_GPU), but ONNX Runtime 1.23 was \
                 built without X; use KIND_CPU, start with --gpu-groups=cpu, or use an ONNX Runtime that can use CUDA here \
                 (--onnxruntime-lib names it)"
            )
        );
        let error = no_tensorrt("m", "1.23", cause());
        assert_eq!(
            error.message(),
            "unable to load model 'm': it asks for Execution Accelerator 'tensorrt', but ONNX Runtime 1.23 was built \
             without X"
        );
    }
}

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use galatea_backend::{InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use crate::{
    check,
    instance::OnnxInstance,
    layout::{Lanes, usable_cores},
    ort::{Library, RunOptions, Session, SessionOptions, TensorInfo},
    settings::Settings,
    signature::Signature,
};

/// An input or output: as clients know it, and as the model does.
pub(crate) struct Port {
    pub spec: TensorSpec,
    pub info: TensorInfo,
}

/// A loaded version. One session, shared by every instance: the weights are in memory once.
pub(crate) struct OnnxModel {
    pub library: Arc<Library>,
    pub session: Arc<Session>,
    pub run_options: RunOptions,
    pub config: Arc<ModelConfig>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub lanes: Lanes,
}

impl OnnxModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        let settings = Settings::read(context)?;
        let path = model_path(context)?;
        let threads = choose_threads(&settings, &config);
        let options = session_options(library, &settings, threads)?;
        let session = Session::load(library, &path, &options)?;
        let signature = Signature::read(&session)?;
        check::check(&config, &signature)?;
        Ok(Self {
            library: library.clone(),
            session: Arc::new(session),
            run_options: RunOptions::new(library, &settings.run_entries())?,
            inputs: ports(&config.inputs, |name| signature.expect_input(name))?,
            outputs: ports(&config.outputs, |name| signature.expect_output(name))?,
            config,
            lanes: Lanes::new(threads.lets_runs_overlap),
        })
    }
}

fn ports<'s>(
    specs: &[TensorSpec],
    find: impl Fn(&str) -> Result<&'s TensorInfo>,
) -> Result<Vec<Port>> {
    specs.iter().map(|s| Ok(Port { spec: s.clone(), info: find(&s.name)?.clone() })).collect()
}

/// The model's file. A folder of that name holds it together with the weights it refers to.
pub(crate) fn model_path(context: &LoadContext) -> Result<PathBuf> {
    let name = &context.config.name;
    find_model(&context.version_dir, &context.config.default_model_filename, name)
}

pub(crate) fn find_model(
    version_dir: &std::path::Path,
    filename: &str,
    model: &str,
) -> Result<PathBuf> {
    let filename = if filename.is_empty() { "model.onnx" } else { filename };
    let mut path = version_dir.join(filename);
    if path.is_dir() {
        path.push("model.onnx");
    }
    if path.is_file() {
        return Ok(path);
    }
    let path = path.display();
    Err(Error::unavailable(format!("unable to find '{path}' for model '{model}'")))
}

/// How many threads the session gets, and what is done with them.
#[derive(Clone, Copy)]
struct Threads {
    intra_op: Option<i32>,
    lets_runs_overlap: bool,
}

/// What the configuration says is done as it says. Otherwise the session gets every core, and runs that
/// overlap are kept apart (see [`Lanes`]).
fn choose_threads(settings: &Settings, config: &ModelConfig) -> Threads {
    let is_chosen = settings.intra_op_threads.is_some()
        || settings.uses_global_threads
        || settings.execution_mode == Some(crate::ort::ExecutionMode::Parallel);
    if is_chosen {
        return Threads { intra_op: settings.intra_op_threads, lets_runs_overlap: false };
    }
    let cores = i32::try_from(usable_cores()).unwrap_or(1);
    let instances: u32 = config.instance_groups.iter().map(|g| g.count).sum();
    Threads { intra_op: Some(cores), lets_runs_overlap: cores > 1 && instances != 1 }
}

fn session_options(
    library: &Arc<Library>,
    settings: &Settings,
    threads: Threads,
) -> Result<SessionOptions> {
    let mut options = SessionOptions::new(library)?;
    if settings.uses_global_threads {
        options.use_global_threads()?;
    } else {
        threads.intra_op.map_or(Ok(()), |n| options.intra_op_threads(n))?;
        settings.inter_op_threads.map_or(Ok(()), |n| options.inter_op_threads(n))?;
    }
    settings.execution_mode.map_or(Ok(()), |mode| options.execution_mode(mode))?;
    settings.graph_level.map_or(Ok(()), |level| options.graph_level(level))?;
    settings.memory_arena.map_or(Ok(()), |on| options.memory_arena(on))?;
    settings.memory_pattern.map_or(Ok(()), |on| options.memory_pattern(on))?;
    for (key, value) in &settings.session_entries {
        options.entry(key, value)?;
    }
    let paths: BTreeSet<_> = settings.operator_libraries.iter().collect();
    paths.into_iter().try_for_each(|path| options.custom_operators(path))?;
    Ok(options)
}

/// What the server holds: instances share the model behind it.
pub(crate) struct SharedModel(pub Arc<OnnxModel>);

impl Model for SharedModel {
    fn new_instance(&self, _spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(OnnxInstance::new(self.0.clone())))
    }
}

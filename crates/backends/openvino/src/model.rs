//! Loads one version of a model: its file, its properties, its shapes, the compiled model.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use galatea_backend::{LoadContext, misconfigured};
use galatea_config::{FieldPath, InstanceKind, ModelConfig};
use galatea_types::{Code, Error, Result};

use crate::{
    file_faults,
    openvino::{CompiledModel, Core, Library, TensorInfo, retyped},
    settings::Settings,
    signature::{self, Binding, Signature},
    threads,
};

/// A loaded version: compiled once for all its instances.
pub(crate) struct OpenVinoModel {
    pub library: Arc<Library>,
    pub config: Arc<ModelConfig>,
    pub compiled: CompiledModel,
    pub settings: Settings,
    /// Inputs of the configuration, in its order.
    pub inputs: Vec<Binding>,
    pub outputs: Vec<Binding>,
    /// All outputs of the model, in its order.
    pub all_outputs: Vec<TensorInfo>,
    /// Number of instances for which the streams were made.
    pub instances: u32,
}

impl OpenVinoModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        check_devices(&config)?;
        let settings = Settings::read(&config, &context.files())?;
        let path =
            find_model(&context.version_dir, config.default_model_filename(), config.name())?;
        let started = Instant::now();
        let failed = |cause| refused(config.name(), cause);
        let core = prepared_core(library, &settings, &config)?;
        let read = core.read_model(&path).map_err(failed);
        let model = read.map_err(|error| file_faults::explained(error, &path, &context.files()))?;
        let signature = Signature::of(&model)?;
        signature.check_names(config.name())?;
        let (inputs, outputs) = signature.bind(&config)?;
        let retypings = signature::retypings(&config, &inputs, &outputs)?;
        let model = retyped(model, &retypings).map_err(failed)?;
        let reshapings = signature::reshapings(&config, &settings, &inputs)?;
        if !reshapings.is_empty() {
            model.reshape(&reshapings).map_err(failed)?;
        }
        let signature = Signature::of(&model)?;
        let (inputs, outputs) = signature.bind(&config)?;
        signature::check_outputs(&config, &settings, &outputs)?;
        let compiled = core.compile(&model).map_err(failed)?;
        report(&compiled, &settings, &config, started);
        Ok(Self {
            library: library.clone(),
            compiled,
            settings,
            inputs,
            outputs,
            all_outputs: signature.outputs,
            instances: threads::instances(&config),
            config,
        })
    }
}

/// Checks the instances' devices. `KIND_MODEL` leaves them to the model, which specifies none.
fn check_devices(config: &ModelConfig) -> Result<()> {
    let gpu = config.instance_groups().iter().find(|group| group.kind == InstanceKind::Gpu);
    match gpu {
        None => Ok(()),
        Some(group) => {
            let (model, name) = (config.name(), &group.name);
            let text = format!(
                "unable to load model '{model}', Triton openVINO backend supports only CPU device: instance group \
                 '{name}' is for GPUs (KIND_GPU)"
            );
            let field = FieldPath::from("instance_group").named(name).field("kind");
            let advice = "write `kind: KIND_CPU`, or leave `kind` out";
            Err(misconfigured(Code::InvalidArg, text, field, advice))
        }
    }
}

/// Returns the error of a model that OpenVINO cannot load.
pub(crate) fn refused(model: &str, cause: Error) -> Error {
    Error::internal(format!("failed to load model '{model}': {cause}")).with_source(cause)
}

/// Makes a core with the model's properties and extension. Each model has its own core, since properties apply to all that a
/// core compiles.
fn prepared_core(
    library: &Arc<Library>,
    settings: &Settings,
    config: &ModelConfig,
) -> Result<Core> {
    let core = Core::new(library)?;
    let refused = |what: String| {
        move |cause: Error| {
            refused(config.name(), Error::new(cause.code(), format!("{what}: {cause}")))
        }
    };
    if let Some(extension) = &settings.extension {
        let what = format!("CPU_EXTENSION_PATH '{}'", extension.display());
        core.add_extension(extension).map_err(refused(what))?;
    }
    for (key, value) in threads::properties(settings, threads::instances(config)) {
        core.set_property(key, &value).map_err(refused(format!("{key} = {value}")))?;
    }
    core.set_property("INFERENCE_PRECISION_HINT", settings.precision)
        .map_err(refused("INFERENCE_PRECISION_HINT".to_owned()))?;
    if let Some(threads) = settings.compilation_threads {
        limit_compilation(&core, threads, config)
            .map_err(refused("COMPILATION_NUM_THREADS".to_owned()))?;
    }
    if let Some(folder) = &settings.cache {
        let text = folder.display().to_string();
        fs::create_dir_all(folder)
            .map_err(|error| Error::internal(format!("cannot make the folder '{text}': {error}")))
            .and_then(|()| core.set_property("CACHE_DIR", &text))
            .map_err(refused("--backend-config=openvino,cache-dir".to_owned()))?;
    }
    Ok(core)
}

/// Limits the threads of compilation if the device knows the property: an unknown one would break its core.
fn limit_compilation(core: &Core, threads: u32, config: &ModelConfig) -> Result<()> {
    const KEY: &str = "COMPILATION_NUM_THREADS";
    let supported = core.property("SUPPORTED_PROPERTIES")?;
    if supported.split_whitespace().any(|known| known == KEY) {
        return core.set_property(KEY, &threads.to_string());
    }
    log::warn!(
        "model '{}': the parameter {KEY} has no effect, OpenVINO {} compiles for the CPU with as many threads as there are",
        config.name(),
        core.library.version
    );
    Ok(())
}

/// Logs the properties of the compiled model, as the library reports them.
#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn report(compiled: &CompiledModel, settings: &Settings, config: &ModelConfig, started: Instant) {
    let property = |key| compiled.property(key).unwrap_or_else(|_| "unknown".to_owned());
    let precision = property("INFERENCE_PRECISION_HINT");
    let origin = match (&settings.cache, property("LOADED_FROM_CACHE").as_str()) {
        (None, _) => "compiled",
        (Some(_), "YES" | "true" | "1") => "taken from the cache",
        (Some(_), _) => "compiled, and put into the cache",
    };
    log::info!(
        "model '{}': {origin} in {:.3} s: NUM_STREAMS {}, INFERENCE_NUM_THREADS {}, PERFORMANCE_HINT {}, \
         INFERENCE_PRECISION_HINT {precision}, ENABLE_CPU_PINNING {}",
        config.name(),
        started.elapsed().as_secs_f64(),
        property("NUM_STREAMS"),
        property("INFERENCE_NUM_THREADS"),
        property("PERFORMANCE_HINT"),
        property("ENABLE_CPU_PINNING"),
    );
    if settings.precision != "f32" && precision != settings.precision {
        log::warn!(
            "model '{}': this processor does not support {}: {precision} is used instead",
            config.name(),
            settings.precision
        );
    }
}

/// Finds the model's file, or its folder: models of TensorFlow are folders.
pub(crate) fn find_model(version_dir: &Path, filename: &str, model: &str) -> Result<PathBuf> {
    let filename = if filename.is_empty() { "model.xml" } else { filename };
    let path = version_dir.join(filename);
    match path.exists() {
        true => Ok(path),
        false => {
            let path = path.display();
            Err(Error::unavailable(format!("unable to find '{path}' for model '{model}'")))
        }
    }
}

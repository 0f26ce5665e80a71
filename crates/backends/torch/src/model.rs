//! Loads one version of a TorchScript model.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_backend::{InstanceSpec, LoadContext, misconfigured};
use galatea_config::{FieldPath, InstanceGroup, InstanceKind, ModelConfig, TensorSpec};
use galatea_types::{Code, DataType, Error, Result};

use crate::{
    load_error::{MissingGpu, no_gpu, refused},
    naming::{self, Inputs},
    places::Places,
    settings::Settings,
    torch::{Library, Module, ModuleDevice, scalar_type_of},
};

pub(crate) struct TorchModel {
    pub library: Arc<Library>,
    pub config: Arc<ModelConfig>,
    pub settings: Settings,
    pub inputs: Inputs,
    /// Position of each output of the configuration among the values that `forward` returns.
    pub outputs: Vec<usize>,
    path: PathBuf,
    modules: Places<Module>,
}

impl TorchModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        check_types(&config)?;
        let path = find_model(&context.version_dir, &config, "model.pt")?;
        let places = places(&config, library)?;
        let settings = Settings::apply(context, library)?;
        let modules = Places::load(&places, Module::writes, |place| {
            load_module(library, &config, &path, place, &settings)
        })?;
        let arguments = modules.first().map_or(&[][..], |module| &module.arguments);
        Ok(Self {
            inputs: Inputs::assign(&config, arguments)?,
            outputs: naming::output_positions(&config)?,
            library: library.clone(),
            config,
            settings,
            path,
            modules,
        })
    }

    /// Returns the module for an instance: the shared one, or its own if instances would see each other's state.
    pub fn module(&self, place: ModuleDevice) -> Result<Arc<Module>> {
        self.modules.take(self.config.name(), place, self.settings.shares_state, || {
            load_module(&self.library, &self.config, &self.path, place, &self.settings)
        })
    }

    /// Returns true if the instances use exactly the loaded places.
    pub fn has_places(&self, instances: &[InstanceSpec]) -> bool {
        let wanted: BTreeSet<ModuleDevice> = instances.iter().map(place_of).collect();
        wanted.iter().eq(self.modules.places())
    }

    /// Returns an error of libtorch, with its cause if that is known.
    pub fn explain(&self, text: &str) -> String {
        explain(&self.library, self.config.name(), text)
    }
}

fn load_module(
    library: &Arc<Library>,
    config: &ModelConfig,
    path: &Path,
    place: ModuleDevice,
    settings: &Settings,
) -> Result<Module> {
    Module::load(library, path, place, settings.switches)
        .map_err(|text| refused(config.name(), path, explain(library, config.name(), &text)))
}

fn explain(library: &Library, model: &str, text: &str) -> String {
    let is_about_gpus = text.contains("CUDA") || text.contains("cuda");
    if library.cuda_devices > 0 || !is_about_gpus {
        return text.to_owned();
    }
    format!(
        "model '{model}' names a GPU in its code or weights, but PyTorch {} finds none that it can use here: \
         trace and save it on the CPU, or serve it where there is a GPU; PyTorch says: {text}",
        library.version
    )
}

/// Finds the model's file, which is `default` unless the configuration names one.
pub(crate) fn find_model(
    version_dir: &Path,
    config: &ModelConfig,
    default: &str,
) -> Result<PathBuf> {
    let filename = match config.default_model_filename() {
        "" => default,
        name => name,
    };
    let path = version_dir.join(filename);
    if path.is_file() {
        return Ok(path);
    }
    let (path, model) = (path.display(), config.name());
    Err(Error::unavailable(format!("unable to find '{path}' for model instance '{model}'")))
}

pub(crate) fn check_types(config: &ModelConfig) -> Result<()> {
    let inputs = config.execution_inputs().iter().map(|spec| ("input", spec));
    let outputs = config.model_outputs().iter().map(|spec| ("output", spec));
    inputs.chain(outputs).try_for_each(|(what, spec)| check_type(config, what, spec))
}

fn check_type(config: &ModelConfig, what: &'static str, spec: &TensorSpec) -> Result<()> {
    let (model, name) = (config.name(), &spec.name);
    let mistake = |text: String, field, advice| {
        let path = FieldPath::from(what).named(&**name).field(field);
        Err(misconfigured(Code::Internal, text, path, advice))
    };
    if spec.data_type != DataType::Bytes {
        let data_type = spec.data_type.config_name();
        return match scalar_type_of(spec.data_type) {
            Some(_) => Ok(()),
            None => mistake(
                format!("unsupported datatype {data_type} for {what} '{name}' for model '{model}'"),
                "data_type",
                "PyTorch has no tensors of this type: write that of the model, for example `TYPE_FP32`",
            ),
        };
    }
    let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
    if dims.len() + usize::from(config.has_batching()) <= 1 {
        return Ok(());
    }
    let text = format!(
        "Triton only supports 1 dimensional List of String as {what} for '{name}' for model '{model}'"
    );
    mistake(text, "dims", "write `max_batch_size: 0` and one dimension, `dims: [ -1 ]`")
}

/// Returns the places of the model's instances, each once.
pub(crate) fn places(config: &ModelConfig, library: &Library) -> Result<Vec<ModuleDevice>> {
    let mut places = Vec::new();
    for group in config.instance_groups() {
        match group.kind {
            InstanceKind::Cpu => places.push(ModuleDevice::Cpu),
            InstanceKind::Model => places.push(ModuleDevice::AsSaved),
            InstanceKind::Gpu => {
                group.gpus.iter().try_for_each(|&gpu| check_gpu(config, group, gpu, library))?;
                places.extend(group.gpus.iter().map(|&gpu| ModuleDevice::Gpu(gpu)));
            }
        }
    }
    if places.is_empty() {
        places.push(ModuleDevice::Cpu);
    }
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

fn check_gpu(
    config: &ModelConfig,
    group: &InstanceGroup,
    gpu: u32,
    library: &Library,
) -> Result<()> {
    let devices = library.cuda_devices;
    if gpu < devices {
        return Ok(());
    }
    let (model, group, version) = (config.name(), &*group.name, &*library.version);
    Err(no_gpu(&MissingGpu { model, group, gpu, version, devices }))
}

pub(crate) fn place_of(spec: &InstanceSpec) -> ModuleDevice {
    match spec.kind {
        InstanceKind::Cpu => ModuleDevice::Cpu,
        InstanceKind::Gpu => ModuleDevice::Gpu(spec.device_id),
        InstanceKind::Model => ModuleDevice::AsSaved,
    }
}

#[cfg(test)]
mod tests {
    use galatea_backend::testing::Host;
    use galatea_config::Diagnostic;

    use super::*;

    #[test]
    fn configuration_errors_name_their_field() {
        for (input, field) in [
            ("data_type: TYPE_UINT32 dims: 1", "data_type"),
            ("data_type: TYPE_STRING dims: [ 1, 1 ]", "dims"),
        ] {
            let config = Host::default().configure(&format!(
                "backend: 'pytorch' input {{ name: 'INPUT__0' {input} }} \
                 output {{ name: 'OUTPUT__0' data_type: TYPE_FP32 dims: 1 }}"
            ));
            let error = check_types(&config.expect("valid")).expect_err("refused");
            let found = Diagnostic::of(&error).expect("a diagnostic");
            assert_eq!(found.field.to_string(), format!("input[\"INPUT__0\"].{field}"));
            assert_eq!(found.text, error.message());
            assert!(found.advice.is_some());
        }
    }
}

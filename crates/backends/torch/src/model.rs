//! Loading one version of a TorchScript model.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_backend::{InstanceSpec, LoadContext};
use galatea_config::{InstanceGroup, InstanceKind, ModelConfig, TensorSpec};
use galatea_types::{DataType, LockExt, Result};

use crate::{
    load_error::LoadError,
    naming::{self, Inputs},
    settings::Settings,
    torch::{Library, Module, Place, scalar_type_of},
};

/// A loaded version.
pub(crate) struct TorchModel {
    pub library: Arc<Library>,
    pub config: Arc<ModelConfig>,
    pub settings: Settings,
    pub inputs: Inputs,
    /// Position of each output of the configuration among what `forward` returns.
    pub outputs: Vec<usize>,
    path: PathBuf,
    modules: BTreeMap<Place, Loaded>,
}

/// The module of one place.
struct Loaded {
    module: Arc<Module>,
    /// Of a module that writes to what it holds: whether an instance has it already.
    is_taken: Mutex<bool>,
}

impl TorchModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        check_types(&config)?;
        let path = find_model(&context.version_dir, &config, "model.pt")?;
        let places = places(&config, library)?;
        let settings = Settings::apply(context, library)?;
        let mut modules = BTreeMap::new();
        for place in places {
            let module = Arc::new(load_module(library, &config, &path, place, &settings)?);
            modules.insert(place, Loaded { module, is_taken: Mutex::new(false) });
        }
        let arguments = modules.values().next().map_or(&[][..], |l| l.module.arguments());
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

    /// The module for an instance: everybody's, or one of its own where instances would see each other's state.
    pub fn module(&self, place: Place) -> Result<Arc<Module>> {
        let loaded = self.modules.get(&place).ok_or_else(|| LoadError::NoInstanceGroup {
            model: self.config.name().to_string(),
            place,
        })?;
        if !loaded.module.writes() || self.settings.shares_state {
            return Ok(loaded.module.clone());
        }
        let mut is_taken = loaded.is_taken.lock_unpoisoned();
        if !std::mem::replace(&mut is_taken, true) {
            return Ok(loaded.module.clone());
        }
        let module = load_module(&self.library, &self.config, &self.path, place, &self.settings)?;
        Ok(Arc::new(module))
    }

    /// Whether these instances are at the places it was loaded for, and at no other ones.
    pub fn has_places(&self, instances: &[InstanceSpec]) -> bool {
        let wanted: BTreeSet<Place> = instances.iter().map(place_of).collect();
        wanted.iter().eq(self.modules.keys())
    }

    /// An error of libtorch, with what it comes from where that is known.
    pub fn explain(&self, text: &str) -> String {
        explain(&self.library, self.config.name(), text)
    }
}

fn load_module(
    library: &Arc<Library>,
    config: &ModelConfig,
    path: &Path,
    place: Place,
    settings: &Settings,
) -> Result<Module> {
    Module::load(library, path, place, settings.switches).map_err(|text| {
        let cause = explain(library, config.name(), &text).into();
        let model = config.name().to_string();
        LoadError::Load { model, path: path.to_path_buf(), cause }.into()
    })
}

fn explain(library: &Library, model: &str, text: &str) -> String {
    let is_about_gpus = text.contains("CUDA") || text.contains("cuda");
    if library.cuda_devices() > 0 || !is_about_gpus {
        return text.to_owned();
    }
    format!(
        "model '{model}' names a GPU in its code or weights, but PyTorch {} finds none that it can use here: \
         trace and save it on the CPU, or serve it where there is a GPU; PyTorch says: {text}",
        library.version()
    )
}

/// The model's file, `default` where the configuration names none.
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
    Err(LoadError::NoFile { model: config.name().to_string(), path }.into())
}

pub(crate) fn check_types(config: &ModelConfig) -> Result<()> {
    let inputs = config.execution_inputs().iter().map(|spec| ("input", spec));
    let outputs = config.model_outputs().iter().map(|spec| ("output", spec));
    inputs.chain(outputs).try_for_each(|(what, spec)| check_type(config, what, spec))
}

fn check_type(config: &ModelConfig, what: &'static str, spec: &TensorSpec) -> Result<()> {
    let names = || (config.name().to_string(), spec.name.to_string());
    if spec.data_type != DataType::Bytes {
        return scalar_type_of(spec.data_type).map(drop).ok_or_else(|| {
            let (model, tensor) = names();
            let data_type = spec.data_type.config_name();
            LoadError::DataType { model, what, tensor, data_type }.into()
        });
    }
    let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
    if dims.len() + usize::from(config.has_batching()) > 1 {
        let (model, tensor) = names();
        return Err(LoadError::StringDimensions { model, what, tensor }.into());
    }
    Ok(())
}

/// Where the model's instances run, each place once.
pub(crate) fn places(config: &ModelConfig, library: &Library) -> Result<Vec<Place>> {
    let mut places = Vec::new();
    for group in config.instance_groups() {
        match group.kind {
            InstanceKind::Cpu => places.push(Place::Cpu),
            InstanceKind::Model => places.push(Place::AsSaved),
            InstanceKind::Gpu => {
                group.gpus.iter().try_for_each(|&gpu| check_gpu(config, group, gpu, library))?;
                places.extend(group.gpus.iter().map(|&gpu| Place::Gpu(gpu)));
            }
        }
    }
    if places.is_empty() {
        places.push(Place::Cpu);
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
    let devices = library.cuda_devices();
    if gpu < devices {
        return Ok(());
    }
    Err(LoadError::NoGpu {
        model: config.name().to_string(),
        group: group.name.to_string(),
        gpu,
        version: library.version().to_owned(),
        devices,
    }
    .into())
}

pub(crate) fn place_of(spec: &InstanceSpec) -> Place {
    match spec.kind {
        InstanceKind::Cpu => Place::Cpu,
        InstanceKind::Gpu => Place::Gpu(spec.device_id),
        InstanceKind::Model => Place::AsSaved,
    }
}

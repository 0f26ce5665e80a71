//! Loads one version of a package.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use galatea_backend::{InstanceSpec, LoadContext, misconfigured};
use galatea_config::{FieldPath, InstanceGroup, InstanceKind, ModelConfig};
use galatea_types::{Code, DataType, Error, Result};
use tempfile::TempDir;

use super::{
    archive::Package,
    checks::Checks,
    container::Container,
    object::{Object, Runtime},
    target,
    tensor_names::{self, TensorNames},
};
use crate::{
    load_error::refused,
    model::{check_types, find_model, place_of, places},
    places::Places,
    settings::Settings,
    torch::{Library, ModuleDevice, scalar_type_of},
};

/// Names of devices in a package.
const CPU: &str = "cpu";
const CUDA: &str = "cuda";

pub(crate) struct PackageModel {
    pub library: Arc<Library>,
    pub config: Arc<ModelConfig>,
    pub settings: Settings,
    /// Position of each input of the configuration among those of the package.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub(super) checks: Checks,
    code: Compiled,
    containers: Places<Container>,
}

/// The compiled package from which containers are made.
struct Compiled {
    object: Arc<Object>,
    runtime: Runtime,
    device: String,
    path: PathBuf,
    /// Folder of the unpacked files, which may have been removed after the first containers were made.
    unpacked: PathBuf,
    /// The folder, kept only if some of its files are opened later.
    folder: Option<TempDir>,
}

impl PackageModel {
    pub fn load(library: &Arc<Library>, context: &LoadContext) -> Result<Self> {
        let config = context.config.clone();
        check_types(&config)?;
        refuse_texts(&config)?;
        let path = find_model(&context.version_dir, &config, "model.pt2")?;
        let places = places(&config, library)?;
        let settings = Settings::apply(context, library)?;
        let (mut code, checks) = Compiled::open(library, &config, &path, &places)?;
        let containers = Places::load(
            &places,
            |container: &Container| container.has_state,
            |place| code.container(&config, place),
        )?;
        if code.device == CPU && !containers.have_state() {
            code.folder = None;
        }
        let (inputs, outputs) = match containers.first() {
            Some(container) => positions(&config, container, &path)?,
            None => (Vec::new(), Vec::new()),
        };
        check_declarations(&config, &inputs, &checks)?;
        let library = library.clone();
        Ok(Self { library, config, settings, inputs, outputs, checks, code, containers })
    }

    /// Returns true if the instances use only the loaded places, and fit into their containers.
    pub(super) fn has_room(&self, all: &[InstanceSpec]) -> bool {
        let mut counts = BTreeMap::<ModuleDevice, usize>::new();
        all.iter().for_each(|spec| *counts.entry(place_of(spec)).or_default() += 1);
        let fits =
            |(&place, &count): (&ModuleDevice, &usize)| count <= instances(&self.config, place);
        counts.keys().eq(self.containers.places()) && counts.iter().all(fits)
    }

    /// Returns the container for an instance: the shared one, or its own if instances could see each other's state.
    pub(super) fn container(&self, place: ModuleDevice) -> Result<Arc<Container>> {
        self.containers.take(self.config.name(), place, self.settings.shares_state, || {
            self.code.container(&self.config, place)
        })
    }
}

impl Compiled {
    fn open(
        library: &Library,
        config: &ModelConfig,
        path: &Path,
        places: &[ModuleDevice],
    ) -> Result<(Self, Checks)> {
        let runtime = library.stable_functions().map_err(|e| refused(config.name(), path, e))?;
        let package = Package::unpack(path).map_err(|e| refused(config.name(), path, e))?;
        target::check_machine(&package.metadata).map_err(|e| refused(config.name(), path, e))?;
        let device = target::device(&package.metadata).to_owned();
        places
            .iter()
            .try_for_each(|&place| check_place(place, &device, library))
            .map_err(|e| refused(config.name(), path, e))?;
        let object = Object::open(&package.library, &runtime.version)
            .map_err(|e| refused(config.name(), path, e))?;
        let checks = Checks::read(&package.source);
        let code = Self {
            object: Arc::new(object),
            runtime,
            device,
            path: path.to_path_buf(),
            unpacked: package.folder.path().to_path_buf(),
            folder: Some(package.folder),
        };
        Ok((code, checks))
    }

    /// Makes a container with room for all instances of the place. With state, one runs after the other.
    fn container(&self, config: &ModelConfig, place: ModuleDevice) -> Result<Container> {
        let gpu = match place {
            ModuleDevice::Cpu => None,
            ModuleDevice::Gpu(index) => Some(index),
            ModuleDevice::AsSaved => (self.device != CPU).then_some(0),
        };
        let create = |runs| {
            Container::create(&self.object, &self.runtime, &self.unpacked, gpu, runs)
                .map_err(|text| refused(config.name(), &self.path, text))
        };
        let instances = instances(config, place);
        let mut container = create(instances)?;
        if container.has_state && instances > 1 {
            container = create(1)?;
        }
        Ok(container)
    }
}

fn refuse_texts(config: &ModelConfig) -> Result<()> {
    let mut specs = config.execution_inputs().iter().chain(config.model_outputs());
    match specs.find(|spec| spec.data_type == DataType::Bytes) {
        None => Ok(()),
        Some(spec) => {
            let (model, name) = (config.name(), &*spec.name);
            let text = format!(
                "unsupported datatype TYPE_STRING for '{name}' for model '{model}': packages take and return tensors"
            );
            let field = FieldPath::from("input").named(name).field("data_type");
            let advice = "make numbers of the text in a model.py, as the step before this one in an ensemble";
            Err(misconfigured(Code::InvalidArg, text, field, advice))
        }
    }
}

/// Checks the place: compiled code runs only where it was compiled for.
fn check_place(
    place: ModuleDevice,
    device: &str,
    library: &Library,
) -> std::result::Result<(), String> {
    match (place, device) {
        (ModuleDevice::Cpu | ModuleDevice::AsSaved, CPU) | (ModuleDevice::Gpu(_), CUDA) => Ok(()),
        (ModuleDevice::AsSaved, CUDA) if library.cuda_devices > 0 => Ok(()),
        (_, CUDA) if library.cuda_devices == 0 => Err(format!(
            "it was compiled for CUDA, and PyTorch {} finds no GPU that it can use here: compile it with the model \
             and its example inputs on the CPU, or serve it where there is a GPU",
            library.version
        )),
        (_, CUDA) => {
            Err("it was compiled for CUDA, and an instance group is for the CPU: use KIND_GPU or \
             KIND_MODEL"
                .to_owned())
        }
        (_, CPU) => {
            Err("it was compiled for the CPU, and an instance group is for a GPU: use KIND_CPU or \
             KIND_MODEL, or compile it with the model and its example inputs on the GPU"
                .to_owned())
        }
        (_, other) => Err(format!("it was compiled for '{other}', which this server cannot use")),
    }
}

/// Returns the number of instances on one CPU or GPU.
fn instances(config: &ModelConfig, place: ModuleDevice) -> usize {
    let is_there = |group: &&InstanceGroup| match (group.kind, place) {
        (InstanceKind::Cpu, ModuleDevice::Cpu) | (InstanceKind::Model, ModuleDevice::AsSaved) => {
            true
        }
        (InstanceKind::Gpu, ModuleDevice::Gpu(index)) => group.gpus.contains(&index),
        _ => false,
    };
    let count: u32 =
        config.instance_groups().iter().filter(is_there).map(|group| group.count).sum();
    usize::try_from(count).unwrap_or(1).max(1)
}

/// Matches the inputs and outputs of the configuration with those of the package.
fn positions(
    config: &ModelConfig,
    container: &Container,
    path: &Path,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let spec = container.call_spec().map_err(|text| refused(config.name(), path, text))?;
    let inputs = TensorNames {
        what: "input",
        prefix: "INPUT__",
        count: container.input_count,
        names: &spec.inputs,
    };
    let outputs = TensorNames {
        what: "output",
        prefix: "OUTPUT__",
        count: container.output_count,
        names: &spec.outputs,
    };
    let positions = (
        inputs.positions(config, config.execution_inputs())?,
        outputs.positions(config, config.model_outputs())?,
    );
    tensor_names::check_complete(config, &inputs)?;
    Ok(positions)
}

/// Compares the declared inputs of the configuration with those that the code expects.
fn check_declarations(config: &ModelConfig, positions: &[usize], checks: &Checks) -> Result<()> {
    for (spec, &position) in config.execution_inputs().iter().zip(positions) {
        let shape = config.shape_in_model(spec);
        let Some(scalar_type) = scalar_type_of(spec.data_type) else { continue };
        checks.check(position, scalar_type, &shape).map_err(|text| {
            Error::invalid_arg(format!(
                "unable to load model '{}', input '{}' {text}",
                config.name(),
                spec.name
            ))
        })?;
    }
    Ok(())
}

//! Which device each instance is placed on, with GPUs in the machine and without.

use std::{
    fs,
    sync::{Arc, Mutex},
};

use galatea_backend::{Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_config::{InstanceKind, MissingGpus, testing::without_places};
use galatea_engine::{
    BackendRegistry, ControlMode, Engine, EngineOptions, GpuOptions, LoadOverrides, LocalRoot,
};
use galatea_types::{Error, Result};

/// Records the instances that are created.
#[derive(Clone, Default)]
struct Recorder {
    has_gpus: bool,
    made: Arc<Mutex<Vec<InstanceSpec>>>,
}

struct Idle;

impl Backend for Recorder {
    fn name(&self) -> &str {
        "recorder"
    }

    fn can_use_gpus(&self) -> bool {
        self.has_gpus
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        let mut kinds = context.config.instance_groups().iter().map(|group| group.kind);
        if !self.has_gpus && kinds.any(|kind| kind == InstanceKind::Gpu) {
            return Err(Error::invalid_arg("this library is built for CPUs only"));
        }
        Ok(Box::new(self.clone()))
    }
}

impl Model for Recorder {
    fn new_instance(&self, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        self.made.lock().unwrap().push(spec.clone());
        Ok(Box::new(Idle))
    }
}

impl ModelInstance for Idle {
    fn execute(&mut self, batch: &mut Batch) {
        batch.fail_all(&Error::internal("idle"));
    }
}

/// Loads model `m` with these instance groups. The instances as `name kind device`, or why not.
fn place(gpus: &[u32], has_gpus: bool, groups: &str) -> std::result::Result<Vec<String>, String> {
    place_or(MissingGpus::Refuse, gpus, has_gpus, groups)
}

fn place_or(
    missing: MissingGpus,
    gpus: &[u32],
    has_gpus: bool,
    groups: &str,
) -> std::result::Result<Vec<String>, String> {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("m/1")).unwrap();
    let config = format!(
        "backend: 'recorder' input {{ name: 'X' data_type: TYPE_FP32 dims: 1 }} \
         output {{ name: 'Y' data_type: TYPE_FP32 dims: 1 }} {groups}"
    );
    fs::write(root.path().join("m/config.pbtxt"), config).unwrap();
    let recorder = Recorder { has_gpus, ..Recorder::default() };
    let backend = recorder.clone();
    let mut registry = BackendRegistry::default();
    registry.register("recorder", move || Ok(Arc::new(backend.clone()) as Arc<dyn Backend>));
    let options = EngineOptions {
        repositories: vec![LocalRoot::at(root.path())],
        control_mode: ControlMode::Explicit,
        gpus: GpuOptions {
            available: gpus.to_vec(),
            missing,
            min_compute_capability: 6.0,
            ..GpuOptions::default()
        },
        ..EngineOptions::default()
    };
    let engine = Engine::new(options, registry);
    let loaded = engine.load_model("m", LoadOverrides::default());
    loaded.map_err(|error| error.message().to_owned())?;
    let mut made = recorder.made.lock().unwrap().clone();
    made.sort_by_key(|spec| spec.index);
    Ok(made.iter().map(|s| format!("{} {:?} {}", s.name, s.kind, s.device_id)).collect())
}

#[test]
fn groups_without_a_kind_use_available_gpus() {
    assert_eq!(place(&[], true, "").unwrap(), ["m_0 Cpu 0"]);
    assert_eq!(place(&[0, 1], true, "").unwrap(), ["m_0_gpu0 Gpu 0", "m_0_gpu1 Gpu 1"]);
    let counted = "instance_group { count: 2 kind: KIND_GPU gpus: [ 1 ] }";
    assert_eq!(place(&[0, 1], true, counted).unwrap(), ["m_0_0_gpu1 Gpu 1", "m_0_1_gpu1 Gpu 1"]);
    let both = "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU } ]";
    assert_eq!(place(&[3], true, both).unwrap(), ["m_0_0 Cpu 0", "m_1_0_gpu3 Gpu 3"]);
}

#[test]
fn a_backend_without_gpu_support_uses_the_cpu_unless_a_gpu_is_requested() {
    assert_eq!(place(&[0, 1], false, "").unwrap(), ["m_0 Cpu 0"]);
    assert_eq!(place(&[0], false, "instance_group { count: 1 }").unwrap(), ["m_0_0 Cpu 0"]);
    for requested in ["kind: KIND_GPU", "kind: KIND_GPU gpus: 0"] {
        let error = place(&[0], false, &format!("instance_group {{ {requested} }}")).unwrap_err();
        assert!(error.contains("this library is built for CPUs only"), "{requested}: {error}");
    }
    let error = place(&[0], false, "instance_group { gpus: 0 }").unwrap_err();
    assert!(error.contains("has kind KIND_CPU but specifies one or more GPUs"), "{error}");
}

#[test]
fn gpu_groups_run_on_the_cpu_if_the_server_allows_it() {
    let on_cpu = |gpus, has_gpus, groups| place_or(MissingGpus::UseCpu, gpus, has_gpus, groups);
    let two = ["m_0_0 Cpu 0", "m_0_1 Cpu 0"];
    let counted = "instance_group { count: 1 kind: KIND_GPU gpus: [ 0, 1 ] }";
    // No GPU, and GPUs that the library of the backend cannot use.
    for (gpus, has_gpus) in [(&[][..], true), (&[0, 1], false)] {
        assert_eq!(on_cpu(gpus, has_gpus, counted).unwrap(), two);
        let open = "instance_group { kind: KIND_GPU }";
        assert_eq!(on_cpu(gpus, has_gpus, open).unwrap(), two[..1]);
    }
    assert_eq!(on_cpu(&[0, 1], true, counted).unwrap(), ["m_0_0_gpu0 Gpu 0", "m_0_0_gpu1 Gpu 1"]);
}

#[test]
fn missing_gpus_are_refused_with_tritons_texts() {
    let group = "instance group m_0 of model m ";
    for (gpus, requested, reason) in [
        (&[][..], "kind: KIND_GPU", "has kind KIND_GPU but no GPUs are available"),
        (
            &[],
            "kind: KIND_GPU gpus: 0",
            "specifies invalid or unsupported gpu id 0. GPUs with at least the minimum required CUDA compute \
             compatibility of 6.000000 are: ",
        ),
        (
            &[0, 2],
            "kind: KIND_GPU gpus: [ 0, 1 ]",
            "specifies invalid or unsupported gpu id 1. GPUs with at least the minimum required CUDA compute \
             compatibility of 6.000000 are: 0, 2",
        ),
    ] {
        let error = place(gpus, true, &format!("instance_group {{ {requested} }}")).unwrap_err();
        assert!(error.contains("this server sees no GPU") == gpus.is_empty(), "{error}");
        let error = without_places(&error);
        assert!(error.ends_with(&format!("{group}{reason};\n")), "{requested}: {error}");
    }
}

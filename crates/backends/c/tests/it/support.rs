//! Compiles backends of C, and opens them.

use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::Arc};

use galatea_backend::{
    Backend, Model, ModelInstance, ServerAccess,
    testing::{Fixture, instance_spec, load_context, model_config},
};
use galatea_backend_c::{CBackend, CBackendOptions, LIBRARIES};
use galatea_types::{Result, Tensor};
use tempfile::TempDir;

/// A folder of backends with one backend in it.
pub struct Backends {
    folder: TempDir,
    name: &'static str,
}

impl Backends {
    /// Compiles a source of `fixtures`, or the example.
    pub fn compile(name: &'static str) -> Self {
        Self::compile_with("cc", &format!("{name}.c"), name)
    }

    /// Compiles a source in C++.
    pub fn compile_cxx(name: &'static str) -> Self {
        Self::compile_with("c++", &format!("{name}.cpp"), name)
    }

    fn compile_with(compiler: &str, file: &str, name: &'static str) -> Self {
        let this = env!("CARGO_MANIFEST_DIR");
        let example = PathBuf::from(this).join("../../../examples/c-backend");
        let own = PathBuf::from(this).join("tests/it/fixtures");
        let source = [&own, &example].map(|folder| folder.join(file));
        let source = source.iter().find(|path| path.exists()).expect("a source");
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(name).join(LIBRARIES.file_name(name));
        std::fs::create_dir(library.parent().unwrap()).unwrap();
        let made = Command::new(compiler)
            .args([
                "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1", "-g", "-pthread", "-I",
            ])
            .arg(&example)
            .arg("-o")
            .arg(&library)
            .arg(source)
            .output()
            .expect("a compiler");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { folder, name }
    }

    pub fn options(&self) -> CBackendOptions {
        CBackendOptions {
            name: self.name.to_owned(),
            directory: self.folder.path().to_owned(),
            settings: BTreeMap::new(),
            completes_config: true,
            waits_for_answers: false,
        }
    }

    pub fn open(&self) -> Arc<dyn Backend> {
        CBackend::open(self.options()).expect("opened")
    }
}

/// A loaded model of a backend.
pub struct Loaded {
    pub model: Box<dyn Model>,
    pub instance: Box<dyn ModelInstance>,
    _folder: TempDir,
}

/// Loads a model with this configuration (without the backend), and makes an instance.
pub fn load(backends: &Backends, config: &str, server: ServerAccess) -> Result<Loaded> {
    load_by(backends.options(), config, server)
}

/// Does the same by a backend with these options.
pub fn load_by(options: CBackendOptions, config: &str, server: ServerAccess) -> Result<Loaded> {
    load_named("m", options, config, server)
}

/// Does the same for a model of this name.
pub fn load_as(
    name: &str,
    backends: &Backends,
    config: &str,
    server: ServerAccess,
) -> Result<Loaded> {
    load_named(name, backends.options(), config, server)
}

fn load_named(
    name: &str,
    options: CBackendOptions,
    config: &str,
    server: ServerAccess,
) -> Result<Loaded> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("1")).unwrap();
    let config = model_config(&format!("name: '{name}' backend: '{}' {config}", options.name));
    let mut context = load_context(&Fixture::new(config, folder.path()));
    context.server = server;
    let model = CBackend::open(options)?.load(context)?;
    let instance = model.new_instance(&instance_spec(name, 0))?;
    Ok(Loaded { model, instance, _folder: folder })
}

/// A configuration of a model with one input and one output of bytes.
pub const BYTES_IN_AND_OUT: &str = "input { name: 'INPUT0' data_type: TYPE_UINT8 dims: -1 }
     output { name: 'OUTPUT0' data_type: TYPE_UINT8 dims: -1 }";

/// Returns an input for it.
pub fn bytes(data: &[u8]) -> Tensor {
    let length = i64::try_from(data.len()).unwrap();
    Tensor::new("INPUT0", galatea_types::DataType::Uint8, [length], data.to_vec())
}

//! Makes packages whose compiled code comes from C, and the library that stands in for libtorch's stable functions:
//! nothing but a PyTorch makes real ones, and Debian's libtorch is older than they are.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, OnceLock},
};

use galatea_backend::Backend;
use galatea_backend_torch::TorchBackend;
use tempfile::TempDir;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{Folder, libtorch, shim};

const STAND_IN: &str = "libstand_in.so";

/// A package under construction.
pub struct Package {
    defines: Vec<String>,
    notes: String,
    source: String,
    name: String,
}

impl Package {
    /// One of the kinds in `model.c`.
    pub fn new(kind: &str) -> Self {
        Self {
            defines: vec![format!("KIND={kind}")],
            notes: "{}".to_owned(),
            source: String::new(),
            name: "m".to_owned(),
        }
    }

    pub fn tensors(self, inputs: usize, outputs: usize) -> Self {
        self.define(&format!("INPUTS={inputs}")).define(&format!("OUTPUTS={outputs}"))
    }

    /// Call spec: JSON.
    pub fn call(self, takes: &str, returns: &str) -> Self {
        self.define(&format!("TAKES={takes:?}")).define(&format!("RETURNS={returns:?}"))
    }

    pub fn define(mut self, define: &str) -> Self {
        self.defines.push(define.to_owned());
        self
    }

    /// The compiler's notes: JSON.
    pub fn notes(mut self, notes: &str) -> Self {
        self.notes = notes.to_owned();
        self
    }

    /// The C++ that lies beside the library.
    pub fn source(mut self, source: &str) -> Self {
        self.source = source.to_owned();
        self
    }

    /// Of the compiled library.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    pub fn folder(&self) -> Folder {
        Folder::with_file("model.pt2", &self.bytes())
    }

    fn bytes(&self) -> Vec<u8> {
        let library = self.library();
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        let mut file = |name: String, content: &[u8]| {
            let place = format!("model/data/aotinductor/model/{name}");
            archive.start_file(place, SimpleFileOptions::default()).unwrap();
            archive.write_all(content).unwrap();
        };
        file(format!("{}.wrapper.so", self.name), &library);
        file(format!("{}.wrapper.cpp", self.name), self.source.as_bytes());
        file(format!("{}.wrapper_metadata.json", self.name), self.notes.as_bytes());
        archive.finish().unwrap().into_inner()
    }

    /// Once for the same definitions.
    fn library(&self) -> Vec<u8> {
        static COMPILED: Mutex<BTreeMap<Vec<String>, Vec<u8>>> = Mutex::new(BTreeMap::new());
        let mut compiled = COMPILED.lock().unwrap();
        compiled.entry(self.defines.clone()).or_insert_with(|| self.compile()).clone()
    }

    fn compile(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("model.so");
        let stand_in = stand_in().parent().unwrap();
        let mut command = compiler(&source("model.c"), &library);
        command.args(self.defines.iter().map(|define| format!("-D{define}")));
        command.arg("-L").arg(stand_in).arg(format!("-l:{STAND_IN}"));
        command.arg(format!("-Wl,-rpath,{}", stand_in.display()));
        run(command);
        fs::read(library).unwrap()
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in").join(name)
}

fn compiler(source: &Path, library: &Path) -> Command {
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-Wall"]).arg(source).arg("-o").arg(library);
    command
}

fn run(mut command: Command) {
    let output = command.output().expect("cc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The library in place of libtorch.
pub fn stand_in() -> &'static Path {
    static LIBRARY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let compile = || {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join(STAND_IN);
        let mut command = compiler(&source("tensors.c"), &library);
        command.arg(format!("-Wl,-soname,{STAND_IN}"));
        run(command);
        (folder, library)
    };
    &LIBRARY.get_or_init(compile).1
}

pub fn backend() -> Arc<dyn Backend> {
    static BACKEND: OnceLock<Arc<dyn Backend>> = OnceLock::new();
    let open = || {
        let cuda = libtorch().cuda_library();
        TorchBackend::with_stable_functions(&shim(), cuda.as_deref(), Some(stand_in()))
            .expect("the shim and the stand-in open")
    };
    BACKEND.get_or_init(open).clone()
}

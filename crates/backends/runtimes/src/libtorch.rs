//! Finds a libtorch: PyTorch's C++ library with its headers.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use galatea_types::{Error, Result};

use crate::{FindOptions, Runtime, find};

const LIBRARY: &str = "libtorch_cpu.so";

/// PyTorch's C++ library with its headers, to compile programs against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libtorch {
    /// Folder with `libtorch_cpu.so` and `libc10.so`.
    pub lib_dir: PathBuf,
    /// Folder with `torch/script.h`.
    pub include_dir: PathBuf,
    /// Major, minor, patch.
    pub version: [u32; 3],
}

impl Libtorch {
    /// Finds libtorch in a folder with `lib` and `include`: the folder `torch` of a Python environment, an unpacked
    /// libtorch, or a prefix such as `/usr` (where Debian's `libtorch-dev` has the library a folder deeper).
    pub fn in_folder(folder: &Path) -> Result<Self> {
        let lacks = |what| {
            let folder = folder.display();
            Error::unavailable(format!("no libtorch in '{folder}': {what} is missing"))
        };
        let lib_dir = lib_dir(&folder.join("lib")).ok_or_else(|| lacks("lib/libtorch_cpu.so"))?;
        let include_dir = folder.join("include");
        if !include_dir.join("torch/script.h").is_file() {
            return Err(lacks("include/torch/script.h (on Debian: apt-get install libtorch-dev)"));
        }
        let version = version(&include_dir).ok_or_else(|| lacks("the header with its version"))?;
        Ok(Self { lib_dir, include_dir, version })
    }

    /// Finds the libtorch to use: the folder named by `options.library` or `$GALATEA_LIBTORCH` (see [`Self::in_folder`]),
    /// the installed runtime, or Debian's. Returns `None` if there is none, and an error if the named folder is not one.
    pub fn find(options: &FindOptions) -> Result<Option<Self>> {
        let named = options.library.clone();
        let variable = || options.environment.path(Runtime::PYTORCH.variable);
        if let Some(folder) = named.or_else(variable) {
            return Self::in_folder(&folder).map(Some);
        }
        let unnamed = FindOptions { library: None, ..options.clone() };
        let installed = find(&Runtime::PYTORCH, &unnamed);
        let folder = installed.as_deref().and_then(Path::parent).and_then(Path::parent);
        Ok(folder.and_then(|folder| Self::in_folder(folder).ok()).or_else(Self::of_system))
    }

    /// Finds Debian's libtorch, from `libtorch-dev`.
    pub fn of_system() -> Option<Self> {
        Self::in_folder(Path::new("/usr")).ok()
    }

    /// Returns the version as text, e.g. `2.15.0`.
    pub fn version_text(&self) -> String {
        self.version.map(|part| part.to_string()).join(".")
    }

    /// Returns the path of the part that every program needs, `libtorch_cpu.so`.
    pub fn library(&self) -> PathBuf {
        self.lib_dir.join(LIBRARY)
    }

    /// Returns the path of the part for GPUs, if this libtorch was built with it.
    pub fn cuda_library(&self) -> Option<PathBuf> {
        Some(self.lib_dir.join("libtorch_cuda.so")).filter(|path| path.is_file())
    }

    /// Returns the folders in which the compiler finds the headers.
    pub(crate) fn include_dirs(&self) -> [PathBuf; 2] {
        [self.include_dir.clone(), self.include_dir.join("torch/csrc/api/include")]
    }
}

/// Returns `lib` or the folder in it for this architecture.
fn lib_dir(lib: &Path) -> Option<PathBuf> {
    let multiarch = lib.join(format!("{}-linux-gnu", std::env::consts::ARCH));
    [lib.to_path_buf(), multiarch].into_iter().find(|dir| dir.join(LIBRARY).is_file())
}

/// Reads the version. Newer libtorch moved the header, and the file in the old place only refers to it.
fn version(include_dir: &Path) -> Option<[u32; 3]> {
    ["torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"]
        .iter()
        .find_map(|header| read_version(&include_dir.join(header)).ok().flatten())
}

fn read_version(header: &Path) -> io::Result<Option<[u32; 3]>> {
    let text = fs::read_to_string(header)?;
    let part = |name: &str| {
        let mut words = text.lines().filter_map(|line| {
            let (key, value) = line.strip_prefix("#define ")?.split_once(' ')?;
            (key == name).then(|| value.trim().parse().ok())?
        });
        words.next()
    };
    let parts = ["TORCH_VERSION_MAJOR", "TORCH_VERSION_MINOR", "TORCH_VERSION_PATCH"].map(part);
    Ok(match parts {
        [Some(major), Some(minor), Some(patch)] => Some([major, minor, patch]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_of_libtorch_are_found() {
        let folder = tempfile::tempdir().expect("folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("created");
            fs::write(path, text).expect("written");
        };
        let missing = |what: &str| {
            let error = Libtorch::in_folder(folder.path()).expect_err("incomplete");
            assert!(error.message().contains(what), "{error}");
        };
        missing("libtorch_cpu.so");
        write(&format!("lib/{}-linux-gnu/libtorch_cpu.so", std::env::consts::ARCH), "");
        missing("torch/script.h");
        write("include/torch/script.h", "");
        missing("version");
        let header = "#pragma once\n#define TORCH_VERSION_MAJOR 1\n#define TORCH_VERSION_MINOR 13\n\
                      #define TORCH_VERSION_PATCH 0\n#define TORCH_VERSION \\\n  \"1.13.0\"\n";
        write("include/torch/csrc/api/include/torch/version.h", header);
        let found = Libtorch::in_folder(folder.path()).expect("complete");
        assert_eq!(found.version_text(), "1.13.0");
        assert!(found.library().is_file());
        assert_eq!(found.cuda_library(), None);
        write("lib/libtorch_cpu.so", "");
        let found = Libtorch::in_folder(folder.path()).expect("complete");
        assert_eq!(found.lib_dir, folder.path().join("lib"));
    }
}

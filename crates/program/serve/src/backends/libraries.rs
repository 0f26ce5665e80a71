//! Finds the native library that a backend opens, or fetches it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use galatea_runtimes::{FindOptions, InstallOptions, Runtime, find, install};
use galatea_types::{Error, Result};

use crate::options::RuntimeOptions;

/// Returns the ONNX Runtime library to open. If there is none, it is fetched if that is allowed.
///
/// The order of choice: the path of a flag or environment variable, the backend directory if one was given, the installed
/// library.
pub fn onnxruntime(options: &RuntimeOptions) -> Result<PathBuf> {
    library(&Runtime::ONNXRUNTIME, options.onnxruntime_lib.as_ref(), "libonnxruntime.so", options)
}

/// Returns the TensorFlow library to open, in the same way.
pub fn tensorflow(options: &RuntimeOptions) -> Result<PathBuf> {
    library(&Runtime::TENSORFLOW, options.tensorflow_lib.as_ref(), "libtensorflow_cc.so", options)
}

/// Returns OpenVINO's C library to open, in the same way.
pub fn openvino(options: &RuntimeOptions) -> Result<PathBuf> {
    library(&Runtime::OPENVINO, options.openvino_lib.as_ref(), "libopenvino_c.so", options)
}

/// `stem`: the name of the library without its version.
fn library(
    runtime: &'static Runtime,
    named: Option<&PathBuf>,
    stem: &str,
    options: &RuntimeOptions,
) -> Result<PathBuf> {
    let environment = &options.environment;
    let is_named = named.is_some() || environment.get(runtime.variable).is_some();
    let given = options.backend_directory.as_deref().filter(|_| !is_named);
    if let Some(path) = given.and_then(|folder| library_in(&folder.join(runtime.name), stem)) {
        return Ok(path);
    }
    let library = named.cloned();
    if let Some(path) = find(runtime, &FindOptions { library, ..FindOptions::new(environment) }) {
        return Ok(path);
    }
    if !options.may_download {
        return Err(Error::unavailable(not_installed(runtime)));
    }
    fetch(runtime, options)
}

fn fetch(runtime: &Runtime, options: &RuntimeOptions) -> Result<PathBuf> {
    let mut progress = options.progress.make();
    progress.note(&format!(
        "{} is not installed; fetching it, a download of {} MB (--runtime-downloads=never prevents that)",
        runtime.title, runtime.megabytes
    ));
    let stop = options.stop.clone();
    let install_options = InstallOptions { stop, ..InstallOptions::new(&options.environment) };
    install(runtime, &install_options, &mut *progress)
}

/// Finds a library with or without a version after its name, as in Triton's images.
fn library_in(folder: &Path, stem: &str) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let version = name.as_deref().and_then(|name| name.strip_prefix(stem));
        version.is_some_and(|version| version.is_empty() || version.starts_with('.'))
    };
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    entries.filter(is_library).min()
}

/// Advice for a library that is not installed.
pub fn not_installed(runtime: &Runtime) -> String {
    format!(
        "{} is not installed: run `galatea runtime install {}`, or name a library with --{}-lib or {}",
        runtime.title, runtime.name, runtime.name, runtime.variable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_backend_directory_is_searched() {
        let dir = tempfile::tempdir().expect("dir");
        let folder = dir.path().join("onnxruntime");
        fs::create_dir(&folder).expect("folder");
        fs::write(folder.join("libonnxruntime_providers_shared.so"), "").expect("file");
        assert_eq!(library_in(&folder, "libonnxruntime.so"), None);
        fs::write(folder.join("libonnxruntime.so.1.32.0"), "").expect("file");
        assert_eq!(
            library_in(&folder, "libonnxruntime.so"),
            Some(folder.join("libonnxruntime.so.1.32.0"))
        );
        assert_eq!(library_in(dir.path(), "libonnxruntime.so"), None);
    }
}

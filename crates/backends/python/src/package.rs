//! The worker's own code, embedded in the program and written to disk for the interpreter.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use galatea_types::{Error, Result};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Path below `worker/`, and content. A test compares this list with the folder.
macro_rules! embedded {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../worker/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = embedded! {
    "__main__.py" "c_python_backend_utils.py" "galatea_worker/__init__.py" "galatea_worker/advice.py"
    "galatea_worker/arguments.py" "galatea_worker/arena.py" "galatea_worker/bls.py" "galatea_worker/children.py"
    "galatea_worker/byte_strings.py" "galatea_worker/codec.py" "galatea_worker/connection.py"
    "galatea_worker/coroutines.py" "galatea_worker/dlpack.py" "galatea_worker/dtypes.py" "galatea_worker/errors.py"
    "galatea_worker/event_channel.py" "galatea_worker/executor.py" "galatea_worker/loader.py" "galatea_worker/log.py"
    "galatea_worker/main.py" "galatea_worker/message_body.py" "galatea_worker/metrics.py"
    "galatea_worker/model_config.py" "galatea_worker/model_control.py" "galatea_worker/outputs.py"
    "galatea_worker/packages.py" "galatea_worker/parameters.py" "galatea_worker/process.py" "galatea_worker/request.py"
    "galatea_worker/response.py" "galatea_worker/senders.py" "galatea_worker/server.py" "galatea_worker/tensor.py"
    "galatea_worker/wire.py" "triton_python_backend_utils.py"
};

/// The worker's code on disk.
pub(crate) struct Package {
    pub folder: PathBuf,
    /// Set if the data folder could not be written. The folder is removed with this value.
    _temporary: Option<TempDir>,
}

impl Package {
    /// Writes the code below the user's data folder, unless it exists already. If that fails, writes it to a temporary
    /// folder.
    pub fn install(data_folder: Option<&Path>) -> Result<Self> {
        if let Some(data_folder) = data_folder {
            match install_below(&data_folder.join("python-worker")) {
                Ok(folder) => return Ok(Self { folder, _temporary: None }),
                Err(error) => log::warn!(
                    "cannot keep the Python worker in '{}' ({error}): it uses a temporary folder instead",
                    data_folder.display()
                ),
            }
        }
        let temporary = tempfile::Builder::new().prefix("galatea-python-").tempdir();
        let written = temporary.and_then(|folder| write(folder.path()).map(|()| folder));
        let temporary = written.map_err(|error| {
            Error::unavailable(format!("cannot store the Python worker: {error}"))
                .with_source(error)
        })?;
        Ok(Self { folder: temporary.path().to_owned(), _temporary: Some(temporary) })
    }
}

/// Installs the code in a folder below `parent` named after its content. One rename puts it there, so it is complete. A
/// folder that was changed since is replaced.
fn install_below(parent: &Path) -> io::Result<PathBuf> {
    let folder = parent.join(fingerprint());
    if is_intact(&folder) {
        return Ok(folder);
    }
    fs::create_dir_all(parent)?;
    let fresh = tempfile::Builder::new().prefix("new-").tempdir_in(parent)?;
    write(fresh.path())?;
    if folder.exists() {
        let old = tempfile::Builder::new().prefix("old-").tempdir_in(parent)?;
        fs::rename(&folder, old.path().join("worker"))?;
    }
    let fresh = fresh.keep();
    match fs::rename(&fresh, &folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let _ = fs::remove_dir_all(&fresh);
            // Another process may have been faster.
            if is_intact(&folder) { Ok(folder) } else { Err(error) }
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    FILES.iter().try_for_each(|(path, content)| {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, content)
    })
}

fn is_intact(folder: &Path) -> bool {
    FILES.iter().all(|(path, content)| {
        fs::read(folder.join(path)).is_ok_and(|found| found == content.as_bytes())
    })
}

fn fingerprint() -> String {
    let mut hash = Sha256::new();
    for (path, content) in FILES {
        hash.update(format!("{path} {}\n{content}", content.len()));
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn files_below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).expect("readable") {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("text");
            if entry.path().is_dir() && name != "__pycache__" && name != "tests" {
                files_below(&entry.path(), &format!("{prefix}{name}/"), found);
            } else if name.ends_with(".py") {
                found.insert(format!("{prefix}{name}"));
            }
        }
    }

    #[test]
    fn every_worker_file_is_embedded() {
        let mut found = BTreeSet::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("worker");
        files_below(&folder, "", &mut found);
        let embedded = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, embedded);
    }

    #[test]
    fn the_worker_package_is_written_once_and_repaired() {
        let data = tempfile::tempdir().expect("folder");
        let install = || Package::install(Some(data.path())).expect("written");
        let folder = install().folder.clone();
        assert!(folder.starts_with(data.path()));
        fs::write(folder.join("__main__.py"), "broken").expect("written");
        assert_eq!(install().folder, folder);
        assert!(is_intact(&folder));
        let kept = fs::read_dir(data.path().join("python-worker")).expect("readable").count();
        assert_eq!(kept, 1);
    }

    #[test]
    fn the_temporary_folder_is_removed_with_its_package() {
        let package = Package::install(Some(Path::new("/dev/null/nowhere"))).expect("elsewhere");
        let folder = package.folder.clone();
        assert!(is_intact(&folder));
        drop(package);
        assert!(!folder.exists());
    }
}

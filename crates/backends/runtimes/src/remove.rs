//! Removes installed runtimes, and counts the freed bytes.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use galatea_types::{Environment, Error, Result, Stop};

use crate::{
    Progress, Runtime,
    error::{cannot_read, cannot_write},
    find::{data_folder, place_of},
    install::lock,
};

/// A folder or file that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedEntry {
    /// The version of the runtime. `None`: an interrupted installation left it.
    pub version: Option<String>,
    /// The removed path.
    pub path: PathBuf,
    /// Bytes that it took on disk.
    pub bytes: u64,
}

/// Returns the folder with all installed versions of a runtime.
pub fn runtime_folder(runtime: &Runtime, environment: &Environment) -> Result<PathBuf> {
    Ok(data_folder(environment)?.join(place_of(runtime)))
}

/// Removes one version of a runtime, or all of them with the remains of interrupted installations. Waits for a running
/// installation. Libraries elsewhere on the machine stay. `before` is called with the folder of each version before its
/// removal, and may return further entries to remove.
///
/// # Errors
/// When no such version is installed, or a folder cannot be removed.
pub fn remove(
    runtime: &Runtime,
    version: Option<&str>,
    environment: &Environment,
    progress: &mut dyn Progress,
    before: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<Vec<RemovedEntry>> {
    let folder = runtime_folder(runtime, environment)?;
    let missing = |installed: &[String]| {
        let title = runtime.title;
        let version = version.map(|version| format!(" '{version}'")).unwrap_or_default();
        let others = match installed {
            [] => String::new(),
            [one] => format!("; installed is {one}"),
            more => format!("; installed are {}", more.join(", ")),
        };
        let folder = folder.display();
        Err(Error::unavailable(format!(
            "{title}{version} is not installed in '{folder}': nothing was removed{others}"
        )))
    };
    if !folder.is_dir() {
        return missing(&[]);
    }
    // A signal ends the program itself, which holds nothing else.
    let _lock = lock(&folder, &Stop::default(), progress)?;
    let there = contents(&folder)?;
    let is_asked = |found: &RemovedEntry| match (version, &found.version) {
        (Some(version), found) => found.as_deref() == Some(version),
        (None, _) => true,
    };
    let (asked, others): (Vec<_>, Vec<_>) = there.into_iter().partition(is_asked);
    if asked.is_empty() {
        let others: Vec<String> = others.into_iter().filter_map(|other| other.version).collect();
        return missing(&others);
    }
    let mut removed = Vec::new();
    for found in asked {
        if let Some(path) = before(&found.path).filter(|path| path.exists()) {
            let bytes = disk_usage(&path);
            remove_entry(&path)?;
            removed.push(RemovedEntry { version: found.version.clone(), path, bytes });
        }
        remove_entry(&found.path)?;
        removed.push(found);
    }
    Ok(removed)
}

/// Lists the versions in order, then the remains of interrupted installations, but not the lock.
fn contents(folder: &Path) -> Result<Vec<RemovedEntry>> {
    let failed = |reason: io::Error| cannot_read(folder, reason);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let is_leftover = name.starts_with('.') || !path.is_dir();
        if name != ".lock" {
            let version = (!is_leftover).then(|| name.to_owned());
            found.push(RemovedEntry { version, bytes: disk_usage(&path), path });
        }
    }
    found.sort_by_key(|found| (found.version.is_none(), found.path.clone()));
    Ok(found)
}

/// Removes an entry. Of a link it removes only the link.
fn remove_entry(path: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(path, error)),
        _ => Ok(()),
    }
}

/// Returns the bytes that a file or a folder takes on disk. Unreadable files count nothing, and links are not followed.
pub fn disk_usage(path: &Path) -> u64 {
    const BLOCK: u64 = 512;
    let own = fs::symlink_metadata(path);
    let is_folder = own.as_ref().is_ok_and(|metadata| metadata.is_dir());
    let mut total = own.map_or(0, |metadata| metadata.blocks() * BLOCK);
    let mut folders: Vec<PathBuf> = is_folder.then(|| path.to_owned()).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            total += metadata.blocks() * BLOCK;
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::SilentProgress;

    const RUNTIME: &Runtime = &Runtime::ONNXRUNTIME;

    /// A data folder with these versions, and what an interrupted download left.
    fn home(versions: &[&str]) -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().expect("folder");
        let folder = home.path().join("runtimes/onnxruntime");
        for version in versions {
            fs::create_dir_all(folder.join(version)).expect("created");
            fs::write(folder.join(version).join("library"), [1; 10_000]).expect("written");
        }
        let text = home.path().to_str().expect("text").to_owned();
        (home, Environment::of([("GALATEA_HOME", text)]))
    }

    fn removed(version: Option<&str>, environment: &Environment) -> Result<Vec<RemovedEntry>> {
        remove(RUNTIME, version, environment, &mut SilentProgress, &|_| None)
    }

    #[test]
    fn one_version_or_all_versions_are_removed() {
        let (home, environment) = home(&["1.0.0", "1.1.0", "1.2.0"]);
        let folder = home.path().join("runtimes/onnxruntime");
        let gone = removed(Some("1.1.0"), &environment).expect("removed");
        assert_eq!(gone.len(), 1);
        assert_eq!(gone[0].version.as_deref(), Some("1.1.0"));
        assert!(gone[0].bytes >= 10_000, "{gone:?}");
        assert!(folder.join("1.0.0/library").is_file() && !folder.join("1.1.0").exists());
        fs::write(folder.join("a.whl.part"), [1; 5000]).expect("written");
        fs::create_dir(folder.join(".1.2.0.new")).expect("created");
        let gone = removed(None, &environment).expect("removed");
        let versions: Vec<_> = gone.iter().map(|gone| gone.version.as_deref()).collect();
        assert_eq!(versions, [Some("1.0.0"), Some("1.2.0"), None, None]);
        let error = removed(None, &environment).expect_err("nothing is left");
        assert!(error.message().contains("ONNX Runtime is not installed in"), "{error}");
    }

    #[test]
    fn a_version_is_a_folder_name_and_never_a_path() {
        let (home, environment) = home(&["1.0.0"]);
        fs::create_dir(home.path().join("precious")).expect("created");
        symlink(home.path().join("precious"), home.path().join("runtimes/onnxruntime/9"))
            .expect("linked");
        for version in ["../../precious", "", ".", "..", ".lock", "1.0.0/", "1.0.1"] {
            let error = removed(Some(version), &environment).expect_err(version);
            assert!(error.message().contains("installed are 1.0.0, 9"), "{error}");
        }
        removed(None, &environment).expect("removed");
        assert!(home.path().join("precious").is_dir(), "a link goes without its folder");
    }

    #[test]
    fn files_that_belong_to_a_version_are_removed_with_it() {
        let (home, environment) = home(&["1.0.0"]);
        let other = home.path().join("shim");
        fs::create_dir(&other).expect("created");
        let before = |folder: &Path| folder.ends_with("1.0.0").then(|| other.clone());
        let gone = remove(RUNTIME, None, &environment, &mut SilentProgress, &before);
        assert_eq!((gone.expect("removed").len(), other.exists()), (2, false));
    }
}

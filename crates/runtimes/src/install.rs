//! Installing a runtime: a wheel found or downloaded, verified, unpacked, and put in place whole.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use galatea_types::{Error, Result};
use ureq::Agent;

use crate::{
    Environment, Runtime, Wheel,
    download::{download, sha256},
    error::RuntimeError,
    find::{data_folder, installed_folder, runtime_folder},
    http::{agent, split_credentials, without_credentials},
    index::{ACCEPT, find_link, project_url},
    pip::PipSettings,
    progress::Progress,
    unpack::unpack,
};

/// Longest project page that is read.
const PAGE_LIMIT: u64 = 64 << 20;

/// How to install.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// Folder of the user's data in place of the usual one.
    pub data_folder: Option<PathBuf>,
    /// A copy of the wheel on this machine: nothing is downloaded.
    pub wheel: Option<PathBuf>,
    /// Whether to install over an installed one.
    pub reinstalls: bool,
    /// Names the data folder, and how pip reaches its index.
    pub environment: Environment,
}

impl InstallOptions {
    /// From the index into the usual folder, as these variables name them, where it is not installed yet.
    pub fn new(environment: &Environment) -> Self {
        Self { data_folder: None, wheel: None, reinstalls: false, environment: environment.clone() }
    }
}

/// Installs `runtime` and returns the path of its library. One that is installed already is left as it is, but a
/// wheel that is named must be readable and have the pinned content even then.
///
/// Two installers at once wait for each other. An interrupted download is resumed.
pub fn install(
    runtime: &Runtime,
    options: &InstallOptions,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let data_folder = match &options.data_folder {
        Some(folder) => folder.clone(),
        None => data_folder(&options.environment)?,
    };
    let installed = installed_folder(runtime, &data_folder);
    let library = installed.join(runtime.library());
    let is_done = || library.is_file() && !options.reinstalls;
    // A file that the user names must be right, also where nothing is left to install.
    if let Some(path) = &options.wheel {
        verify(path, pinned_wheel(runtime)?)?;
    }
    if is_done() {
        return Ok(library);
    }
    let wheel = pinned_wheel(runtime)?;
    let folder = runtime_folder(runtime, &data_folder);
    fs::create_dir_all(&folder).map_err(|e| cannot_write(&folder, e))?;
    let _lock = lock(&folder, progress)?;
    // Another installer may have done it while this one waited.
    if is_done() {
        return Ok(library);
    }
    let file = obtain(runtime, wheel, options, &folder, progress)?;
    place(runtime, file.path(), &folder, &installed)?;
    file.clean_up();
    progress.note(&format!(
        "installed {} {} in '{}'",
        runtime.title,
        runtime.version,
        installed.display()
    ));
    Ok(library)
}

fn pinned_wheel(runtime: &Runtime) -> Result<&'static Wheel> {
    Ok(runtime.wheel().ok_or_else(|| RuntimeError::NotOffered(runtime.clone()))?)
}

pub(crate) fn cannot_write(path: &Path, source: io::Error) -> Error {
    RuntimeError::Write { path: path.to_path_buf(), source }.into()
}

/// Held while installing; the system releases it when the process ends, however it does.
pub(crate) fn lock(folder: &Path, progress: &mut dyn Progress) -> Result<File> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(|e| cannot_write(&path, e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.note("another installation is under way, waiting for it");
            file.lock().map_err(|e| cannot_write(&path, e))?;
        }
        Err(TryLockError::Error(e)) => return Err(cannot_write(&path, e)),
    }
    Ok(file)
}

/// A wheel with the right content.
enum WheelFile {
    /// A file of the user's: left where it is.
    Found(PathBuf),
    Downloaded(PathBuf),
}

impl WheelFile {
    fn path(&self) -> &Path {
        match self {
            Self::Found(path) | Self::Downloaded(path) => path,
        }
    }

    fn clean_up(self) {
        if let Self::Downloaded(path) = self {
            // The installation is complete; a file left over only takes space.
            let _ = fs::remove_file(path);
        }
    }
}

fn obtain(
    runtime: &Runtime,
    wheel: &Wheel,
    options: &InstallOptions,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<WheelFile> {
    if let Some(path) = &options.wheel {
        return Ok(WheelFile::Found(path.clone()));
    }
    let settings = PipSettings::read(&options.environment);
    for candidate in settings.folders.iter().map(|f| f.join(wheel.filename)) {
        if candidate.is_file() && verify(&candidate, wheel).is_ok() {
            return Ok(WheelFile::Found(candidate));
        }
    }
    let part = folder.join(format!("{}.part", wheel.filename));
    // Whole, but not unpacked: an earlier installer was stopped between the two.
    if part.is_file() && verify(&part, wheel).is_ok() {
        return Ok(WheelFile::Downloaded(part));
    }
    let agent = agent(&settings)?;
    fetch(runtime, wheel, &settings, &agent, &part, progress)
        .map_err(|e| e.prefixed(format!("cannot install {}: ", runtime.title)))?;
    Ok(WheelFile::Downloaded(part))
}

/// From the first index that has the file.
fn fetch(
    runtime: &Runtime,
    wheel: &Wheel,
    settings: &PipSettings,
    agent: &Agent,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut reasons = Vec::new();
    for index in &settings.indexes {
        match look_up(agent, index, runtime.project, wheel.filename) {
            Ok(url) => return fetch_verified(agent, &url, wheel, part, progress),
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.is_empty() {
        reasons.push("pip's settings name no package index".to_owned());
    }
    let (filename, variable) = (wheel.filename, runtime.variable);
    Err(RuntimeError::NoIndex { reasons, filename, variable }.into())
}

fn fetch_verified(
    agent: &Agent,
    url: &str,
    wheel: &Wheel,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let was_begun = part.exists();
    download(agent, url, wheel.filename, part, progress)?;
    let verified = verify(part, wheel);
    if verified.is_err() {
        fs::remove_file(part).map_err(|e| cannot_write(part, e))?;
        if was_begun {
            // What an earlier attempt left may have been the bad half.
            progress.note("the download is damaged, starting over");
            download(agent, url, wheel.filename, part, progress)?;
            let again = verify(part, wheel);
            if again.is_err() {
                fs::remove_file(part).map_err(|e| cannot_write(part, e))?;
            }
            return again;
        }
    }
    verified
}

/// Address of the file on an index, or why there is none.
fn look_up(agent: &Agent, index: &str, project: &str, filename: &str) -> Result<String, String> {
    let url = project_url(index, project);
    let shown = without_credentials(&url);
    let (address, credentials) = split_credentials(&url);
    let mut request = agent.get(&address).header("Accept", ACCEPT);
    if let Some(credentials) = credentials {
        request = request.header("Authorization", credentials);
    }
    let mut response = request.call().map_err(|e| format!("cannot reach '{shown}': {e}"))?;
    if response.status().as_u16() != 200 {
        return Err(format!("'{shown}' answers {}", response.status().as_u16()));
    }
    let kind = response.headers().get("content-type").and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let page = response
        .body_mut()
        .with_config()
        .limit(PAGE_LIMIT)
        .read_to_string()
        .map_err(|e| format!("cannot read '{shown}': {e}"))?;
    find_link(&url, &kind, &page, filename)
        .ok_or_else(|| format!("'{shown}' does not list '{filename}'"))
}

fn verify(path: &Path, wheel: &Wheel) -> Result<()> {
    let path_buf = || path.to_path_buf();
    let found = sha256(path).map_err(|source| RuntimeError::Read { path: path_buf(), source })?;
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(RuntimeError::Content { path: path_buf(), found, pinned: wheel.sha256 }.into())
}

/// Unpacks beside the target and renames: the folder of a version is never half there.
fn place(runtime: &Runtime, wheel: &Path, folder: &Path, installed: &Path) -> Result<()> {
    let staging = folder.join(format!(".{}.new", runtime.version));
    if staging.exists() {
        fs::remove_dir_all(&staging).map_err(|e| cannot_write(&staging, e))?;
    }
    unpack(wheel, runtime.members, &staging)?;
    if installed.exists() {
        fs::remove_dir_all(installed).map_err(|e| cannot_write(installed, e))?;
    }
    fs::rename(&staging, installed).map_err(|e| cannot_write(installed, e))
}

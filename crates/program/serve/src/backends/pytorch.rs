//! PyTorch: a libtorch of this machine or an installed one, and the shim compiled against it.

use std::path::{Path, PathBuf};

use galatea_backend_torch::SHIM;
use galatea_runtimes::{
    FindOptions, InstallOptions, Libtorch, Progress, Runtime, ShimOptions, install, prepare_shim,
    shim_folder,
};
use galatea_types::{Environment, Error, Result};

use crate::options::RuntimeOptions;

const RUNTIME: &Runtime = &Runtime::PYTORCH;

/// The libraries that the backend opens.
pub(super) struct Pytorch {
    pub libtorch: Libtorch,
    pub shim: PathBuf,
}

/// Returns the libtorch to use, with its shim. Half a gigabyte is not fetched unless the user asks for it.
pub(super) fn prepared(options: &RuntimeOptions, progress: &mut dyn Progress) -> Result<Pytorch> {
    let environment = &options.environment;
    let found = find(options.libtorch.clone(), environment)?;
    let libtorch = found.ok_or_else(|| Error::unavailable(not_installed()))?;
    let stop = Some(options.stop.clone());
    with_shim(libtorch, &ShimOptions { stop, ..ShimOptions::new(environment) }, progress)
}

/// Finds libtorch: in `folder` if given, else in `GALATEA_LIBTORCH`, else the installed one, else Debian's.
pub fn find(folder: Option<PathBuf>, environment: &Environment) -> Result<Option<Libtorch>> {
    Libtorch::find(&FindOptions { library: folder, ..FindOptions::new(environment) })
}

/// Advice for a machine without libtorch.
pub fn not_installed() -> String {
    format!(
        "{} is not installed: run `galatea runtime install {}` (a download of {} MB), or name the folder of a libtorch \
         (with lib and include in it) with --libtorch or {}",
        RUNTIME.title, RUNTIME.name, RUNTIME.megabytes, RUNTIME.variable
    )
}

/// Takes the named or present libtorch; fetches one if there is none, or if the options ask for it.
pub fn install_one(
    options: &InstallOptions,
    folder: Option<PathBuf>,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let is_named = folder.is_some();
    let is_fetched = !is_named && (options.wheel.is_some() || options.reinstalls);
    let there = if is_fetched { None } else { find(folder, &options.environment)? };
    let libtorch = match there {
        Some(libtorch) => {
            let (version, folder) = (libtorch.version_text(), libtorch.lib_dir.display());
            let other = format!("; --reinstall fetches {} instead", RUNTIME.version);
            let other = if is_named { "" } else { &other };
            progress.note(&format!("using libtorch {version} in '{folder}'{other}"));
            libtorch
        }
        None => fetched(options, progress)?,
    };
    let rebuilds = options.reinstalls;
    let shim_options = ShimOptions { rebuilds, ..ShimOptions::new(&options.environment) };
    Ok(with_shim(libtorch, &shim_options, progress)?.libtorch.library())
}

fn fetched(options: &InstallOptions, progress: &mut dyn Progress) -> Result<Libtorch> {
    if options.wheel.is_none() {
        progress.note(&format!(
            "fetching {} {}, a download of {} MB; the libraries for the CPU and the headers are kept",
            RUNTIME.title, RUNTIME.version, RUNTIME.megabytes
        ));
    }
    let library = install(RUNTIME, options, progress)?;
    let folder = library.parent().and_then(|lib| lib.parent());
    Libtorch::in_folder(folder.unwrap_or(&library))
}

/// Returns the folder of the shim that was compiled against this libtorch.
pub fn shim_of(folder: &Path, environment: &Environment) -> Option<PathBuf> {
    let libtorch = Libtorch::in_folder(folder).ok()?;
    shim_folder(&libtorch, &SHIM, &ShimOptions::new(environment)).ok()
}

fn with_shim(
    libtorch: Libtorch,
    options: &ShimOptions,
    progress: &mut dyn Progress,
) -> Result<Pytorch> {
    let shim = prepare_shim(&libtorch, &SHIM, options, progress)?;
    Ok(Pytorch { libtorch, shim })
}

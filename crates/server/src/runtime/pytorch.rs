//! PyTorch: a libtorch of this machine or an installed one, and the shim compiled against it.

use std::path::PathBuf;

use galatea_backend_torch::SHIM;
use galatea_runtimes::{
    Environment, FindOptions, InstallOptions, Libtorch, Progress, Runtime, ShimOptions, install,
    prepare_shim,
};
use galatea_types::{Error, Result};

const RUNTIME: &Runtime = &Runtime::PYTORCH;

/// What the backend opens.
pub struct Pytorch {
    pub libtorch: Libtorch,
    pub shim: PathBuf,
}

/// The libtorch to use, with its shim. It is not fetched unasked: half a gigabyte is for the user to decide.
pub fn prepared(
    folder: Option<PathBuf>,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Pytorch> {
    let libtorch = find(folder, environment)?.ok_or_else(|| Error::unavailable(not_installed()))?;
    with_shim(libtorch, false, environment, progress)
}

/// In `folder` where one is given, else where `GALATEA_LIBTORCH` points, else installed, else Debian's.
pub fn find(folder: Option<PathBuf>, environment: &Environment) -> Result<Option<Libtorch>> {
    Libtorch::find(&FindOptions { library: folder, ..FindOptions::new(environment) })
}

pub fn not_installed() -> String {
    format!(
        "{} is not installed: run `galatea runtime install {}`, or name the folder of a libtorch (with lib and \
         include in it) with --libtorch or {}",
        RUNTIME.title, RUNTIME.name, RUNTIME.variable
    )
}

/// Takes the libtorch that is named or there; fetches one where there is none, or where asked to.
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
    Ok(with_shim(libtorch, options.reinstalls, &options.environment, progress)?.libtorch.library())
}

fn fetched(options: &InstallOptions, progress: &mut dyn Progress) -> Result<Libtorch> {
    let library = install(RUNTIME, options, progress)?;
    let folder = library.parent().and_then(|lib| lib.parent());
    Libtorch::in_folder(folder.unwrap_or(&library))
}

fn with_shim(
    libtorch: Libtorch,
    rebuilds: bool,
    environment: &Environment,
    progress: &mut dyn Progress,
) -> Result<Pytorch> {
    let options = ShimOptions { rebuilds, ..ShimOptions::new(environment) };
    let shim = prepare_shim(&libtorch, &SHIM, &options, progress)?;
    Ok(Pytorch { libtorch, shim })
}

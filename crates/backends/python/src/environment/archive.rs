//! An environment from an archive, which is unpacked once into the cache.

use std::{
    fs, io,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    process::Command,
    time::UNIX_EPOCH,
};

use galatea_tar_archive::UnpackError;
use galatea_types::{Error, Result, Stop};
use sha2::{Digest, Sha256};

use super::{
    cache::{CachedFolder, root_of},
    confinement::{Confinement, ProgramAccess},
    interpreter::installations,
    lease::EnvironmentLease,
    options::{MAX_BYTES, MAX_FILES},
    request::Work,
    search, space,
    version::{Version, VersionRange},
};

pub(super) struct Unpacking<'a> {
    pub work: Work<'a>,
    pub confinement: &'a Confinement,
}

impl Unpacking<'_> {
    /// Returns the folder of the unpacked environment, and the lease that keeps it.
    pub fn unpacked(&self, archive: &Path) -> Result<(PathBuf, EnvironmentLease)> {
        let cached = CachedFolder::new(self.work, digest(archive)?)?;
        let (folder, lease) = cached.get(&mut |folder| self.unpack(archive, folder))?;
        Ok((root_of(&folder), lease))
    }

    fn unpack(&self, archive: &Path, folder: &Path) -> Result<()> {
        let (model, shown) = (self.work.request.model_name, archive.display());
        log::info!(
            "model '{model}': unpacking the Python environment '{shown}' into '{}' (once)",
            folder.display()
        );
        let mut watch = UnpackProgress { model, archive, stop: &self.confinement.stop };
        galatea_tar_archive::unpack(archive, folder, self.work.options.archive, &mut watch)
            .map_err(|e| failed(archive, folder, e))?;
        let root = root_of(folder);
        if root.join("pyvenv.cfg").exists() {
            self.relink(archive, &root)?;
        }
        if !root.join("bin/python").exists() {
            return Err(Error::internal(format!(
                "'{shown}' has no Python environment: it has no bin/python; pack one with conda-pack"
            )));
        }
        self.run_conda_unpack(archive, &root)?;
        log::info!("model '{model}': '{shown}' is unpacked");
        Ok(())
    }

    /// Replaces a venv's links to the interpreter it was created with by links to one of this machine.
    fn relink(&self, archive: &Path, root: &Path) -> Result<()> {
        let python = root.join("bin/python");
        if python.exists() {
            return Ok(());
        }
        let configuration = fs::read_to_string(root.join("pyvenv.cfg")).unwrap_or_default();
        let of = |key: &str| setting(&configuration, key);
        let version = of("version").or_else(|| of("version_info")).and_then(Version::parse);
        let prefixed =
            |e: Error| e.prefixed(format_args!("the venv packed in '{}': ", archive.display()));
        let range = version.and_then(|v| VersionRange::parse(&format!("{}.{}", v.major, v.minor)));
        let range = range.ok_or_else(|| {
            prefixed(Error::invalid_arg("its pyvenv.cfg does not state the version of Python"))
        })?;
        let home = of("home").map(|home| Path::new(home).join("python3"));
        let base =
            search::choose(&range, home.as_deref(), self.work.variables).map_err(prefixed)?.path;
        replace_links(root, &base, &configuration).map_err(|e| space::not_written(root, e))
    }

    /// Runs the script `conda-unpack` in the archive: many files of a conda environment contain its old path, which it
    /// corrects.
    fn run_conda_unpack(&self, archive: &Path, root: &Path) -> Result<()> {
        let script = root.join("bin/conda-unpack");
        if !script.is_file() {
            return Ok(());
        }
        let mut command = Command::new(root.join("bin/python"));
        command.arg(&script).current_dir(root);
        command.env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        let model = self.work.request.model_name;
        let mut log = |line: &str| log::info!("model '{model}': conda-unpack: {line}");
        let reach = ProgramAccess {
            readable: installations(&root.join("bin/python")),
            writable: vec![root.to_owned()],
            has_network: false,
        };
        let done = self.confinement.run(command, reach, self.work.options.build_timeout, &mut log);
        done.map_err(|failure| {
            if failure.is_disk_full() {
                return space::disk_full(root, failure);
            }
            let text = format!("conda-unpack of '{}' {failure}", archive.display());
            Error::unavailable(text).with_source(failure)
        })
    }
}

/// Shows the progress of unpacking, and ends it when the program is asked to stop.
struct UnpackProgress<'a> {
    model: &'a str,
    archive: &'a Path,
    stop: &'a Stop,
}

impl galatea_tar_archive::Watch for UnpackProgress<'_> {
    fn make_room(&mut self, _: u64) -> io::Result<()> {
        self.stop.check().map_err(io::Error::other)
    }

    fn show_progress(&mut self, bytes: u64) {
        let (model, shown) = (self.model, self.archive.display());
        log::info!("model '{model}': unpacked {:.0} MB of '{shown}'", bytes as f64 / 1e6);
    }
}

fn hint(error: &UnpackError) -> String {
    let option =
        |option| format!("; a higher limit can be set with --backend-config=python,{option}=N");
    match error {
        UnpackError::Kind => "; pack the environment with conda-pack, or name its folder".into(),
        UnpackError::Unsafe { .. } => {
            "; pack the environment again without it, or name its folder".into()
        }
        UnpackError::TooManyBytes(_) => option(MAX_BYTES),
        UnpackError::TooManyFiles(_) => option(MAX_FILES),
        _ => String::new(),
    }
}

/// Makes the error of a failed unpacking. As in Triton no fault of an archive is the client's error.
fn failed(archive: &Path, folder: &Path, cause: UnpackError) -> Error {
    let shown = archive.display();
    match cause {
        UnpackError::Write { error, .. } if space::is_full(&error) => {
            space::disk_full(folder, error).prefixed(format_args!("cannot unpack '{shown}': "))
        }
        cause => Error::internal(format!("cannot unpack '{shown}': {cause}{}", hint(&cause)))
            .with_source(cause),
    }
}

/// Returns a digest of the archive's path, size and time of change.
fn digest(archive: &Path) -> Result<Sha256> {
    let unreadable = |cause: io::Error| {
        let text = format!("cannot read '{}': {cause}", archive.display());
        Error::internal(text).with_source(cause)
    };
    let path = fs::canonicalize(archive).map_err(unreadable)?;
    let metadata = fs::metadata(&path).map_err(unreadable)?;
    let modified = metadata.modified().map_err(unreadable)?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut digest = Sha256::new();
    digest.update(b"archive\0");
    digest.update(path.as_os_str().as_bytes());
    digest.update(metadata.len().to_le_bytes());
    digest.update(since.as_nanos().to_le_bytes());
    Ok(digest)
}

/// Reads a line `key = value` of pyvenv.cfg.
fn setting<'a>(configuration: &'a str, key: &str) -> Option<&'a str> {
    configuration.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn replace_links(root: &Path, base: &Path, configuration: &str) -> io::Result<()> {
    let home = base.parent().unwrap_or(Path::new("/"));
    let lines = configuration.lines().map(|line| match line.split_once('=') {
        Some((name, _)) if name.trim() == "home" => format!("home = {}\n", home.display()),
        _ => format!("{line}\n"),
    });
    fs::write(root.join("pyvenv.cfg"), lines.collect::<String>())?;
    let python = root.join("bin/python");
    // It may be a link to another name of the interpreter, whose link to elsewhere was left out.
    if fs::symlink_metadata(&python).is_ok() {
        fs::remove_file(&python)?;
    }
    symlink(base, &python)?;
    let python3 = root.join("bin/python3");
    if fs::symlink_metadata(&python3).is_err() {
        symlink("python", python3)?;
    }
    Ok(())
}

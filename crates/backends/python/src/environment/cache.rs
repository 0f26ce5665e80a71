//! Folders that are created once and then used by every server of the machine.
//!
//! The files of an environment contain its path, so it cannot be moved. It is created in place, under a lock, and a marker
//! is written last. A folder without a marker was left by an interrupted attempt.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use galatea_runtimes::disk_usage;
use galatea_types::{Error, Result};
use sha2::{Digest, Sha256};

use super::{
    cache_figures::{self, MARKER},
    command::Limits,
    lease::{Access, EnvironmentLease, FolderLock},
    prune,
    request::{Work, cache_folder},
    space,
};

pub(super) struct CachedFolder<'a> {
    root: PathBuf,
    /// A digest of everything that determines the content.
    key: String,
    work: Work<'a>,
}

impl<'a> CachedFolder<'a> {
    pub fn new(work: Work<'a>, digest: Sha256) -> Result<Self> {
        let key = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { root: cache_folder(work.variables)?, key, work })
    }

    /// Returns the folder and the lease that keeps it. `create` makes the folder unless it is complete. A lock serializes
    /// creations of the same folder, in this process and others. When `create` fails nothing is left.
    pub fn get(
        &self,
        create: &mut dyn FnMut(&Path) -> Result<()>,
    ) -> Result<(PathBuf, EnvironmentLease)> {
        let folder = self.root.join(&self.key);
        fs::create_dir_all(&self.root).map_err(|e| self.not_written(e))?;
        let _content = self.lock(Access::Content)?;
        let is_new = !is_complete(&folder);
        if is_new {
            self.create(&folder, create)?;
        }
        let lease = EnvironmentLease::new(self.lock(Access::Use)?);
        if is_new {
            prune::prune(&self.root, self.work.options.cache);
        }
        cache_figures::note_content(&self.root);
        Ok((folder, lease))
    }

    fn create(&self, folder: &Path, create: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        space::remove(folder).map_err(|e| self.not_written(e))?;
        let created = create(folder).and_then(|()| self.complete(folder));
        cache_figures::note_creation(created.is_ok());
        if created.is_err()
            && let Err(e) = space::remove(folder)
        {
            log::warn!("cannot remove '{}': {e}", folder.display());
        }
        created
    }

    fn complete(&self, folder: &Path) -> Result<()> {
        let size = disk_usage(folder).to_string();
        write_new(&folder.join(MARKER), &size).map_err(|e| self.not_written(e))
    }

    /// Takes the lock, which is held until dropped, or until this process dies.
    fn lock(&self, access: Access) -> Result<FolderLock> {
        let Work { request, options, .. } = self.work;
        let mut on_wait = || {
            let model = request.model_name;
            log::info!("model '{model}': waiting for a load that prepares the same environment");
        };
        let stop = &request.confinement.stop;
        let limits = Limits { time: options.build_timeout, stop };
        let lock = FolderLock::acquire(&self.root, &self.key, access, limits, &mut on_wait);
        let lock = lock.map_err(|e| self.not_written(e))?;
        if lock.is_none() {
            stop.check()?;
        }
        lock.ok_or_else(|| {
            Error::unavailable(format!(
                "another process has been preparing '{}' for longer than {} s; set a longer limit with \
                 --backend-config=python,environment-build-timeout-seconds=N",
                self.root.join(&self.key).display(),
                options.build_timeout.as_secs()
            ))
        })
    }

    fn not_written(&self, error: io::Error) -> Error {
        space::not_written(&self.root, error)
    }
}

/// Writes a new file. It overwrites nothing and follows no link: a package could have put either there.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

/// Returns true if the folder has its marker, and the interpreter that its links lead to is still there.
fn is_complete(folder: &Path) -> bool {
    folder.join(MARKER).exists() && root_of(folder).join("bin/python").exists()
}

/// Returns the root of the environment in a folder: the folder itself, or the only one in it, as some archives have it.
pub(super) fn root_of(folder: &Path) -> PathBuf {
    if folder.join("bin").is_dir() {
        return folder.to_owned();
    }
    let Ok(entries) = fs::read_dir(folder) else { return folder.to_owned() };
    let mut roots = entries.flatten().map(|entry| entry.path()).filter(|p| p.join("bin").is_dir());
    match (roots.next(), roots.next()) {
        (Some(only), None) => only,
        _ => folder.to_owned(),
    }
}

//! Repositories that are not on this machine: their addresses, and the cache of their models.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, anyhow};
use galatea_engine::RepositoryRoot;
use galatea_remote_repository::{
    Cache, CacheLimit, RemoteError, RemoteRoot, archive, client, hub, object_stores, parse_address,
};
use galatea_types::{Environment, Error, Stop};
use galatea_web_client::WebClient;

use super::model_path;
use crate::memory::MemorySize;

/// Settings of the folder for fetched models.
#[derive(Clone, Debug, Default)]
pub struct RepositoryCacheOptions {
    /// `--repository-cache-directory`; empty: not given.
    pub directory: PathBuf,
    /// `--repository-cache-size`.
    pub size: MemorySize,
}

/// Opens such repositories. They share their threads, connections and cache folder, which the first one makes.
pub struct RemoteRepositories<'a> {
    environment: &'a Environment,
    options: &'a RepositoryCacheOptions,
    stop: Stop,
    shared: Option<(Arc<WebClient>, Arc<Cache>)>,
}

impl<'a> RemoteRepositories<'a> {
    /// Makes the value without opening any.
    pub fn new(environment: &'a Environment, options: &'a RepositoryCacheOptions) -> Self {
        Self { environment, options, stop: Stop::default(), shared: None }
    }

    /// Stops fetching when the program is asked to stop.
    pub fn ended_by(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// Opens the repository; `None`: the path is on this machine.
    pub fn open(&mut self, path: &Path) -> Option<Result<Arc<dyn RepositoryRoot>>> {
        let given = path.to_str().filter(|text| text.contains("://"))?;
        let opened = self.open_address(given);
        Some(
            opened.map_err(|error| anyhow!("creating server: {} - {error}", error.code().as_str())),
        )
    }

    fn open_address(&mut self, given: &str) -> Result<Arc<dyn RepositoryRoot>, Error> {
        if hub::is_address(given) {
            let ((network, cache), backend_of) = (self.shared()?, model_path::backend_of_name);
            return Ok(hub::open(given, self.environment, network, cache, backend_of)?);
        }
        if archive::is_address(given) {
            let (network, cache) = self.shared()?;
            return Ok(archive::open(given, network, cache, model_path::of_unpacked)?);
        }
        let address = parse_address(given).ok_or_else(|| unknown(given))?;
        let ((network, cache), address) = (self.shared()?, address?);
        let files = object_stores::open(given, &address, self.environment, &network)?;
        Ok(Arc::new(RemoteRoot::new(files, network, cache)))
    }

    fn shared(&mut self) -> Result<(Arc<WebClient>, Arc<Cache>), RemoteError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.clone());
        }
        let network = Arc::new(client(self.environment, self.stop.clone())?);
        let cache = Cache::open(&self.directory(), limit(self.options.size))?;
        Ok(self.shared.insert((network, cache)).clone())
    }

    /// Returns the folder of files that can be fetched again. Containers without a home use the folder for temporary files.
    fn directory(&self) -> PathBuf {
        if !self.options.directory.as_os_str().is_empty() {
            return self.options.directory.clone();
        }
        let environment = self.environment;
        let cache = environment.path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let cache = cache.or_else(|| Some(environment.path("HOME")?.join(".cache")));
        match cache {
            Some(cache) => cache.join("galatea/models"),
            None => {
                let user = rustix::process::geteuid().as_raw();
                std::env::temp_dir().join(format!("galatea-models-{user}"))
            }
        }
    }
}

fn limit(size: MemorySize) -> CacheLimit {
    match size {
        MemorySize::Bytes(bytes) => CacheLimit::Bytes(bytes as u64),
        MemorySize::Percent(percent) => CacheLimit::ShareOfFree(percent as f64 / 100.0),
    }
}

fn unknown(given: &str) -> Error {
    let text = format!(
        "'{given}' is not the address of a repository: use a folder, s3://BUCKET/PATH, gs://BUCKET/PATH, \
         as://ACCOUNT/CONTAINER/PATH, hf://ORGANISATION/MODEL or https://HOST/FILE.tar.gz#sha256=DIGEST"
    );
    Error::unsupported(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)], given: &str) -> PathBuf {
        let environment = Environment::of(variables.iter().copied());
        let options = RepositoryCacheOptions { directory: given.into(), ..Default::default() };
        RemoteRepositories::new(&environment, &options).directory()
    }

    #[test]
    fn the_cache_folder_is_chosen_from_flag_and_environment() {
        let home = ("HOME", "/users/a");
        assert_eq!(folder(&[home], "/given"), Path::new("/given"));
        assert_eq!(folder(&[home], ""), Path::new("/users/a/.cache/galatea/models"));
        let xdg = ("XDG_CACHE_HOME", "/cache");
        assert_eq!(folder(&[home, xdg], ""), Path::new("/cache/galatea/models"));
        assert!(folder(&[], "").to_string_lossy().contains("galatea-models-"));
    }

    #[test]
    fn addresses_of_unknown_kinds_are_refused_instead_of_used_as_paths() {
        let (environment, options) = (Environment::default(), RepositoryCacheOptions::default());
        let mut remote = RemoteRepositories::new(&environment, &options);
        assert!(remote.open(Path::new("/models")).is_none());
        let error = unknown("ftp://x").to_string();
        assert!(error.contains("'ftp://x' is not the address of a repository"), "{error}");
    }
}

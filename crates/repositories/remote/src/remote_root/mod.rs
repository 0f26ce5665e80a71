//! A remote model repository, made of any [`RemoteFiles`].

use std::{
    any::Any,
    fmt, io,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use galatea_engine::{FolderLease, FolderSnapshot, RepositoryRoot};
use galatea_types::{LockExt, Result};
use galatea_web_client::WebClient;

use crate::{
    cache::{Cache, CacheKey},
    error::{FailureKind, RemoteError},
    fetch::{self, Progress},
    last_contact::LastContact,
    listings::Listings,
    names::{self, Files},
    remote_files::{RemoteFile, RemoteFiles},
    retry,
};

/// Most models of one repository.
const MOST_MODELS: usize = 100_000;

/// Most files of one model.
const MOST_FILES: usize = 100_000;

/// Most bytes of a text in a repository, as in a local one.
const MOST_TEXT: u64 = 16 << 20;

/// Time limit for one listing, with all its pages and repetitions.
const LISTING_TIMEOUT: Duration = Duration::from_secs(300);

/// Most attempts to fetch a model that changes meanwhile.
const TURNS: usize = 3;

/// A remote repository. It fetches models into the cache folder.
pub struct RemoteRoot<F> {
    remote: Arc<F>,
    network: Arc<WebClient>,
    cache: Arc<Cache>,
    reach: LastContact,
    /// The models of the last successful listing.
    known: Mutex<Vec<String>>,
    listings: Arc<Listings>,
}

impl<F: RemoteFiles> RemoteRoot<F> {
    /// Makes the repository. Requests nothing yet.
    pub fn new(remote: F, network: Arc<WebClient>, cache: Arc<Cache>) -> Self {
        let remote = Arc::new(remote);
        Self {
            remote,
            network,
            cache,
            reach: LastContact::default(),
            known: Mutex::default(),
            listings: Arc::default(),
        }
    }

    /// Asks the place, and repeats that while it does not answer.
    fn ask<T, W>(
        &self,
        question: impl Fn(Arc<F>) -> W + Send + Sync + 'static,
    ) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, RemoteError>> + Send,
    {
        let remote = self.remote.clone();
        self.network.wait(async move {
            let all = retry::retried(|| question(remote.clone()));
            tokio::time::timeout(LISTING_TIMEOUT, all).await.unwrap_or_else(|_| {
                let seconds = LISTING_TIMEOUT.as_secs();
                let text = format!("it did not answer in {seconds} s");
                Err(RemoteError::new(FailureKind::Unavailable, text))
            })
        })
    }

    /// Records if the place answered.
    fn noted<T>(&self, answer: Result<T, RemoteError>) -> Result<T, RemoteError> {
        self.reach.note(self.remote.place(), &answer);
        answer
    }

    /// Requests a listing by `ask`. While listings are in use, a place that did not answer is not asked again.
    fn listed<T>(&self, ask: impl FnOnce() -> Result<T, RemoteError>) -> Result<T, RemoteError> {
        if let Some(failure) = self.listings.failure() {
            return Err(failure);
        }
        let round = self.listings.round();
        self.noted(ask()).inspect_err(|failure| self.listings.keep_failure(round, failure))
    }

    /// Returns the files of a model by their path in its folder.
    fn files(&self, model: &str) -> Result<Arc<Files>, RemoteError> {
        let files = self.list(model)?;
        if files.is_empty() {
            let text = format!("there is no folder '{model}' in '{}'", self.remote.place());
            return Err(RemoteError::new(FailureKind::Missing, text));
        }
        Ok(files)
    }

    /// Returns the files of a model, or none if it does not exist.
    fn list(&self, model: &str) -> Result<Arc<Files>, RemoteError> {
        if let Some(files) = self.listings.model(model) {
            return Ok(files);
        }
        let round = self.listings.round();
        let folder = model.to_owned();
        let question = move |remote: Arc<F>| {
            let folder = folder.clone();
            async move { remote.list(&folder, MOST_FILES).await }
        };
        let listed = self.listed(|| self.ask(question));
        let files = Arc::new(names::by_path(model, listed?)?);
        self.listings.keep_model(round, model, &files);
        Ok(files)
    }

    /// Returns true if the model exists. While listings are kept, it requests the model's own listing, which is needed next.
    fn has(&self, model: &str) -> Result<bool, RemoteError> {
        if let Some(holds) = self.listings.holds(model) {
            return Ok(holds);
        }
        if self.listings.is_kept() {
            return match self.list(model) {
                // The load of the model reports the fault.
                Err(error) if error.kind() == FailureKind::Invalid => Ok(true),
                listed => listed.map(|files| !files.is_empty()),
            };
        }
        let folder = model.to_owned();
        self.noted(self.ask(move |remote| {
            let folder = folder.clone();
            async move { remote.holds(&folder).await }
        }))
    }

    fn key(&self, model: &str, files: &Files) -> CacheKey {
        let identity = self.remote.identity();
        let sizes: Vec<String> = files.values().map(|file| file.size.to_string()).collect();
        let of_file = files
            .iter()
            .zip(&sizes)
            .flat_map(|((path, file), size)| [path.as_str(), size.as_str(), file.version.as_str()]);
        CacheKey::of(model, [identity.as_str()].into_iter().chain(of_file))
    }

    fn fetch(&self, model: &str) -> Result<FolderLease, RemoteError> {
        let mut turn = 1;
        loop {
            let files = self.files(model)?;
            match self.fetch_files(model, files) {
                // Somebody is uploading it.
                Err(error) if error.kind() == FailureKind::Changed && turn < TURNS => {
                    log::info!("model '{model}' changed while it was fetched: {error}");
                    self.listings.forget();
                    turn += 1;
                }
                other => return other,
            }
        }
    }

    fn fetch_files(&self, model: &str, files: Arc<Files>) -> Result<FolderLease, RemoteError> {
        let what = format!("model '{model}' from '{}'", self.remote.place());
        let key = self.key(model, &files);
        let size = files.values().map(|file| file.size).fold(0, u64::saturating_add);
        let mut fill = |folder: &Path| {
            let progress = Arc::new(Progress::start(&what, files.len(), size));
            let (remote, files) = (self.remote.clone(), Files::clone(&files));
            let (folder, model) = (folder.to_owned(), model.to_owned());
            let fetched = fetch::fetch(remote, files, folder, model, progress.clone());
            self.network.wait(async move {
                tokio::select! {
                    done = fetched => done.map(|()| progress.finish()),
                    // Writes lines to the log meanwhile.
                    () = progress.report() => Ok(()),
                }
            })
        };
        Ok(FolderLease::new(self.cache.get(&key, &what, size, &mut fill)?))
    }

    fn text(&self, model: &str, file: &str) -> Result<String, RemoteError> {
        let files = self.files(model)?;
        let key = self.key(model, &files);
        let missing =
            || RemoteError::new(FailureKind::Missing, format!("there is no file '{file}'"));
        let found = files.get(file).cloned().ok_or_else(missing)?;
        if found.size > MOST_TEXT {
            let text = format!("the file '{}' is larger than {MOST_TEXT} bytes", found.path);
            return Err(RemoteError::new(FailureKind::Invalid, text));
        }
        let bytes =
            match self.cache.find(&key)?.map(|lease| std::fs::read(lease.as_ref().join(file))) {
                Some(Ok(bytes)) => bytes,
                _ => self.noted(self.ask(move |remote| read(remote, found.clone())))?,
            };
        String::from_utf8(bytes).map_err(|_| {
            RemoteError::new(FailureKind::Invalid, format!("the file '{file}' is not UTF-8"))
        })
    }

    fn names(&self) -> Result<Vec<String>, RemoteError> {
        if let Some(names) = self.listings.folders() {
            return Ok(names);
        }
        let round = self.listings.round();
        let listed =
            self.listed(|| self.ask(|remote| async move { remote.folders(MOST_MODELS).await }))?;
        let (mut names, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|name| names::is_folder_name(name));
        if let Some(other) = others.first() {
            log::debug!("'{}': {other:?} cannot be the name of a model", self.remote.place());
        }
        names.retain(|name| !name.starts_with('.'));
        self.listings.keep_folders(round, &names);
        self.known.lock_unpoisoned().clone_from(&names);
        Ok(names)
    }
}

async fn read<F: RemoteFiles>(remote: Arc<F>, file: RemoteFile) -> Result<Vec<u8>, RemoteError> {
    use futures_util::TryStreamExt;
    if file.size == 0 {
        return Ok(Vec::new());
    }
    let mut open = remote.open(&file, 0).await?;
    let mut bytes = Vec::new();
    while let Some(next) = open.bytes.try_next().await? {
        bytes.extend_from_slice(&next);
        if bytes.len() as u64 > file.size {
            let text = format!("the file '{}' is longer than listed", file.path);
            return Err(RemoteError::new(FailureKind::Changed, text));
        }
    }
    match bytes.len() as u64 == file.size {
        true => Ok(bytes),
        false => {
            let text = format!("the answer for the file '{}' ended early", file.path);
            Err(RemoteError::new(FailureKind::Unavailable, text))
        }
    }
}

impl<F: RemoteFiles> RepositoryRoot for RemoteRoot<F> {
    /// Lists the place too: one that cannot be listed at the start would look like a repository without models.
    fn check(&self) -> Result<()> {
        // The caller reports a failure.
        self.ask(|remote| async move { remote.check().await })?;
        Ok(self.names().map(drop)?)
    }

    fn begin_look(&self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.listings.begin()))
    }

    fn place(&self) -> String {
        self.remote.place().to_owned()
    }

    fn new_name(&self) -> Option<&str> {
        self.remote.new_name()
    }

    fn problem(&self) -> Option<String> {
        self.reach.problem()
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        Ok(self.names()?)
    }

    /// While the place does not answer, uses its last listing: a load then reports why the model is not available.
    fn holds(&self, model: &str) -> bool {
        if model.starts_with('.') || !names::is_folder_name(model) {
            return false;
        }
        let answer = self.has(model);
        answer.unwrap_or_else(|_| self.known.lock_unpoisoned().iter().any(|name| name == model))
    }

    fn read_text(&self, model: &str, file: &str) -> io::Result<String> {
        Ok(self.text(model, file)?)
    }

    fn snapshot(&self, model: &str) -> io::Result<FolderSnapshot> {
        let files = self.files(model)?;
        let entries = files.iter().map(|(path, file)| (path.as_str(), (file.size, &file.version)));
        Ok(FolderSnapshot::of_listing(entries))
    }

    fn lease(&self, model: &str) -> Result<FolderLease> {
        let failed = |error: RemoteError| {
            error.within(format!("failed to fetch model '{model}' from '{}'", self.remote.place()))
        };
        Ok(self.fetch(model).map_err(failed)?)
    }
}

impl<F: RemoteFiles> fmt::Debug for RemoteRoot<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteRoot").field(&self.remote.place()).finish()
    }
}

#[cfg(test)]
mod tests;

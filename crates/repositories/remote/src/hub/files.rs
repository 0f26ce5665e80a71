//! The files of a repository on a hub.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock},
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use galatea_types::LockExt;
use sha2::{Digest, Sha256};

use super::{
    address::HubAddress,
    client::HubClient,
    layout::{self, BackendOf, Layout, ModelFile},
    listing::{self, HubFile},
};
use crate::{
    error::{FailureKind, RemoteError},
    hex,
    remote_files::{Checksum, OpenFile, RemoteFile, RemoteFiles},
    web,
};

/// Most files of one repository.
const MOST_FILES: usize = 100_000;

/// Most bytes of a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// The files of a hub's repository.
#[derive(Debug)]
pub struct HubFiles {
    place: String,
    address: HubAddress,
    client: HubClient,
    backend_of: BackendOf,
    seen: Mutex<Option<Arc<CommitFiles>>>,
    /// Name of the model that is one file.
    file_model: OnceLock<String>,
}

/// The served files of a repository at one commit.
#[derive(Debug)]
struct CommitFiles {
    commit: String,
    models: BTreeMap<String, Vec<ServedFile>>,
}

#[derive(Clone, Debug)]
struct ServedFile {
    /// The file with its path here.
    file: RemoteFile,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Hub(HubFile),
    /// A text that is made here.
    Text(Bytes),
}

impl HubFiles {
    pub fn new(place: &str, address: HubAddress, client: HubClient, backend_of: BackendOf) -> Self {
        let (seen, file_model) = (Mutex::default(), OnceLock::new());
        Self { place: place.to_owned(), address, client, backend_of, seen, file_model }
    }

    /// Returns the current files. It asks the hub for the revision's commit, and for the files only if the commit is new.
    async fn now(&self) -> Result<Arc<CommitFiles>, RemoteError> {
        let revision = &self.address.revision;
        let commit = match listing::is_digest(revision) {
            true => revision.clone(),
            false => self.client.commit(revision).await?,
        };
        let known = self.seen.lock_unpoisoned().clone();
        if let Some(seen) = known.filter(|seen| seen.commit == commit) {
            return Ok(seen);
        }
        let files = self.client.files(&commit, MOST_FILES).await?;
        let models = match layout::of(&self.address, &files, self.backend_of)? {
            Layout::Models(models) => models.into_iter().map(of_folder).collect(),
            Layout::File(mut file) => {
                // The name stays the same as at the server's start, whatever the file is called later.
                file.model.clone_from(self.file_model.get_or_init(|| file.model.clone()));
                [(file.model.clone(), self.of_file(&commit, file).await?)].into()
            }
        };
        log::info!("'{}' is at commit {commit}", self.place);
        let seen = Arc::new(CommitFiles { commit, models });
        *self.seen.lock_unpoisoned() = Some(seen.clone());
        Ok(seen)
    }

    /// Serves the file as the first version of a model, with a configuration that names the file and its backend.
    async fn of_file(
        &self,
        commit: &str,
        file: ModelFile<'_>,
    ) -> Result<Vec<ServedFile>, RemoteError> {
        let own = match file.config {
            Some(config) => self.text(commit, config).await?,
            None => String::new(),
        };
        let config = galatea_engine::config_of_file(own, &file.name, file.backend);
        let in_version = file
            .files
            .iter()
            .map(|(path, found)| served(format!("{}/1/{path}", file.model), found));
        let config = made(format!("{}/config.pbtxt", file.model), config);
        Ok(in_version.chain([config]).collect())
    }

    async fn text(&self, commit: &str, file: &HubFile) -> Result<String, RemoteError> {
        if file.size > MAX_CONFIG {
            let text =
                format!("'{}' is larger than {MAX_CONFIG} bytes", web::printable(&file.path, 200));
            return Err(RemoteError::new(FailureKind::Invalid, text));
        }
        let bytes = self.client.open(commit, file, 0).await?;
        let text = bytes.try_fold(Vec::new(), |mut all, next| async move {
            all.extend_from_slice(&next);
            Ok(all)
        });
        String::from_utf8(text.await?).map_err(|_| {
            let text = format!("'{}' is not UTF-8", web::printable(&file.path, 200));
            RemoteError::new(FailureKind::Invalid, text)
        })
    }
}

fn of_folder((name, files): (String, Vec<(String, &HubFile)>)) -> (String, Vec<ServedFile>) {
    let files =
        files.into_iter().map(|(path, file)| served(format!("{name}/{path}"), file)).collect();
    (name, files)
}

fn served(path: String, file: &HubFile) -> ServedFile {
    let checksum = file.sha256.map(Checksum::Sha256);
    let remote = RemoteFile { path, size: file.size, version: file.version.clone(), checksum };
    ServedFile { file: remote, source: Source::Hub(file.clone()) }
}

fn made(path: String, text: String) -> ServedFile {
    let sha256: [u8; 32] = Sha256::digest(&text).into();
    let (version, checksum) = (hex::encoded(&sha256), Some(Checksum::Sha256(sha256)));
    let file = RemoteFile { path, size: text.len() as u64, version, checksum };
    ServedFile { file, source: Source::Text(text.into()) }
}

impl RemoteFiles for HubFiles {
    fn place(&self) -> &str {
        &self.place
    }

    fn new_name(&self) -> Option<&str> {
        self.file_model.get().map(String::as_str)
    }

    /// Returns the hub and the repository. Equal files have the same version everywhere: two addresses of one repository
    /// share fetched files.
    fn identity(&self) -> String {
        format!("{}/{}", self.client.endpoint, self.address.repository)
    }

    async fn check(&self) -> Result<(), RemoteError> {
        self.now().await.map(drop)
    }

    async fn folders(&self, most: usize) -> Result<Vec<String>, RemoteError> {
        let models: Vec<_> = self.now().await?.models.keys().cloned().collect();
        match models.len() > most {
            true => {
                let text = format!("there are more than {most} models in it");
                Err(RemoteError::new(FailureKind::Invalid, text))
            }
            false => Ok(models),
        }
    }

    async fn holds(&self, folder: &str) -> Result<bool, RemoteError> {
        Ok(self.now().await?.models.contains_key(folder))
    }

    async fn list(&self, folder: &str, most: usize) -> Result<Vec<RemoteFile>, RemoteError> {
        let seen = self.now().await?;
        let files = seen.models.get(folder).map(Vec::as_slice).unwrap_or_default();
        if files.len() > most {
            let text = format!("there are more than {most} files in '{folder}'");
            return Err(RemoteError::new(FailureKind::Invalid, text));
        }
        Ok(files.iter().map(|served| served.file.clone()).collect())
    }

    async fn open(&self, file: &RemoteFile, from: u64) -> Result<OpenFile, RemoteError> {
        let seen = self.seen.lock_unpoisoned().clone();
        let found = seen.as_ref().and_then(|seen| {
            let model = seen.models.get(file.path.split('/').next()?)?;
            model.iter().find(|served| served.file == *file)
        });
        let (Some(seen), Some(found)) = (&seen, found) else {
            let text = format!("'{}' is of another commit now", web::printable(&file.path, 200));
            return Err(RemoteError::new(FailureKind::Changed, text));
        };
        let bytes = match &found.source {
            Source::Hub(source) => self.client.open(&seen.commit, source, from).await?,
            Source::Text(text) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
                web::bytes_of(text.slice(from..))
            }
        };
        Ok(OpenFile { bytes, checksum: None })
    }
}

//! Fetches the files of a model: several at once, each straight to disk, and resumed after a break.

mod output;
mod progress;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::StreamExt;
use tokio::{sync::Semaphore, task::JoinSet};

use self::output::Output;
pub use self::progress::Progress;
use crate::{
    cache,
    error::{FailureKind, RemoteError},
    remote_files::{RemoteFile, RemoteFiles},
    retry::Resume,
};

/// Files that are fetched at the same time.
const AT_ONCE: usize = 8;

/// Fetches `files`, by their path below `folder`/`name`, into that folder. Each appears there when it is complete and
/// checked. Until then it is in `folder`/`parts`, where the next call finds it.
pub async fn fetch<F: RemoteFiles>(
    remote: Arc<F>,
    files: BTreeMap<String, RemoteFile>,
    folder: PathBuf,
    name: String,
    progress: Arc<Progress>,
) -> Result<(), RemoteError> {
    let parts = folder.join("parts");
    std::fs::create_dir_all(&parts).map_err(|error| cache::not_written(&folder, &error))?;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    for (number, (path, file)) in files.into_iter().enumerate() {
        let (remote, progress, places) = (remote.clone(), progress.clone(), places.clone());
        let (part, target) = (parts.join(number.to_string()), folder.join(&name).join(path));
        under_way.spawn(async move {
            let _place = places.acquire().await;
            FileFetch { remote: &*remote, file: &file, progress: &progress }
                .run(&part, &target)
                .await
        });
    }
    // The first failure ends all other fetches.
    while let Some(done) = under_way.join_next().await {
        done.unwrap_or_else(|_| Err(RemoteError::new(FailureKind::Local, "a download panicked")))?;
    }
    std::fs::remove_dir_all(&parts).map_err(|error| cache::not_written(&folder, &error))
}

struct FileFetch<'a, F> {
    remote: &'a F,
    file: &'a RemoteFile,
    progress: &'a Progress,
}

impl<F: RemoteFiles> FileFetch<'_, F> {
    async fn run(&self, part: &Path, target: &Path) -> Result<(), RemoteError> {
        let not_written = |error| cache::not_written(target, &error);
        if target.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return std::fs::create_dir_all(target).map_err(not_written);
        }
        if target.exists() {
            self.progress.add(self.file.size);
            return Ok(());
        }
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(not_written)?;
        }
        let mut output = Output::open(part, self.file.size).map_err(not_written)?;
        self.progress.add(output.length);
        if let Err(error) = self.fill(&mut output).await {
            if error.kind() != FailureKind::Unavailable {
                output.discard();
            }
            return Err(error.within(format!("failed to fetch '{}'", self.file.path)));
        }
        std::fs::rename(part, target).map_err(not_written)
    }

    /// Fetches until the file is complete, as long as each attempt adds to it.
    async fn fill(&self, output: &mut Output) -> Result<(), RemoteError> {
        let what = format!("'{}'", self.file.path);
        let mut resume = Resume::at(output.length);
        while let Err(error) = self.copy(output).await {
            resume.wait(error, output.length, &what).await?;
        }
        Ok(())
    }

    async fn copy(&self, output: &mut Output) -> Result<(), RemoteError> {
        if self.file.size == 0 {
            return Ok(());
        }
        let mut open = self.remote.open(self.file, output.length).await?;
        output.expect(self.file.checksum.or(open.checksum))?;
        while let Some(bytes) = open.bytes.next().await {
            let bytes = bytes?;
            // Blocks a thread that is meant for this.
            output.write(&bytes)?;
            self.progress.add(bytes.len() as u64);
        }
        output.check_whole()
    }
}

#[cfg(test)]
mod tests;

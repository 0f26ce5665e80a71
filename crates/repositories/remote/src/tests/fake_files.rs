//! A place for tests, in memory: it counts what it is asked, and breaks as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use galatea_types::LockExt;
use tokio::sync::Barrier;

use crate::{
    error::{FailureKind, RemoteError},
    remote_files::{Checksum, OpenFile, RemoteFile, RemoteFiles},
};

/// What happens to one attempt to read a file.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The connection breaks after so many bytes of the answer.
    Cut(usize),
    /// The answer ends there, as if that were all.
    End(usize),
    /// More comes than there is.
    More,
    /// There is no answer but this.
    Fails(FailureKind),
    /// There is none at all.
    Hangs,
}

/// See the module.
#[derive(Debug, Default)]
pub struct FakeFiles {
    content: Mutex<BTreeMap<String, (Bytes, Option<Checksum>)>>,
    faults: Mutex<BTreeMap<String, VecDeque<Fault>>>,
    /// Files that were opened, and from which byte on.
    pub opened: Mutex<Vec<(String, u64)>>,
    /// Questions for names and lists.
    pub listed: Mutex<Vec<String>>,
    /// Where those who read wait for each other.
    pub meeting: Option<Arc<Barrier>>,
    reading: Arc<AtomicUsize>,
    most_reading: AtomicUsize,
}

impl FakeFiles {
    /// A file, in the place of what was there.
    pub fn put(&self, path: &str, content: impl Into<Bytes>) {
        self.put_with(path, content, None);
    }

    /// One that says what it comes to.
    pub fn put_with(&self, path: &str, content: impl Into<Bytes>, checksum: Option<Checksum>) {
        let mut files = self.content.lock_unpoisoned();
        files.insert(path.to_owned(), (content.into(), checksum));
    }

    /// The next attempts to read a file go so; those after them are well.
    pub fn break_next(&self, path: &str, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock_unpoisoned().entry(path.to_owned()).or_default().extend(faults);
    }

    /// How it is listed.
    pub fn file(&self, path: &str) -> RemoteFile {
        let files = self.content.lock_unpoisoned();
        let (content, checksum) = files.get(path).expect("a file that was put");
        // Its version is its content.
        let version = format!("{content:?}").chars().take(40).collect();
        let size = content.len() as u64;
        RemoteFile { path: path.to_owned(), size, version, checksum: *checksum }
    }

    /// Files of one place that were read at the same time.
    pub fn most_reading(&self) -> usize {
        self.most_reading.load(Ordering::SeqCst)
    }

    fn below(&self, folder: &str) -> Vec<String> {
        let inside = format!("{folder}/");
        let files = self.content.lock_unpoisoned();
        files.keys().filter(|path| path.starts_with(&inside)).cloned().collect()
    }

    fn note(&self, question: String) {
        self.listed.lock_unpoisoned().push(question);
    }
}

/// Somebody reads.
struct Reading(Arc<AtomicUsize>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn failure(kind: FailureKind) -> RemoteError {
    RemoteError::new(kind, "on purpose")
}

impl RemoteFiles for FakeFiles {
    fn place(&self) -> &str {
        "fake://place"
    }

    fn identity(&self) -> String {
        "fake".to_owned()
    }

    async fn check(&self) -> Result<(), RemoteError> {
        self.note("check".to_owned());
        Ok(())
    }

    async fn folders(&self, _: usize) -> Result<Vec<String>, RemoteError> {
        self.note("folders".to_owned());
        let files = self.content.lock_unpoisoned();
        let mut names: Vec<_> =
            files.keys().filter_map(|path| path.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        Ok(names)
    }

    async fn holds(&self, folder: &str) -> Result<bool, RemoteError> {
        self.note(format!("holds {folder}"));
        Ok(!self.below(folder).is_empty())
    }

    async fn list(&self, folder: &str, _: usize) -> Result<Vec<RemoteFile>, RemoteError> {
        self.note(format!("list {folder}"));
        Ok(self.below(folder).iter().map(|path| self.file(path)).collect())
    }

    async fn open(&self, file: &RemoteFile, from: u64) -> Result<OpenFile, RemoteError> {
        let reading = Reading(self.reading.clone());
        let count = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_reading.fetch_max(count, Ordering::SeqCst);
        self.opened.lock_unpoisoned().push((file.path.clone(), from));
        if let Some(meeting) = &self.meeting {
            meeting.wait().await;
        }
        let fault = self.faults.lock_unpoisoned().get_mut(&file.path).and_then(VecDeque::pop_front);
        if let Some(Fault::Fails(kind)) = fault {
            return Err(failure(kind));
        }
        if self.file(&file.path) != *file {
            return Err(failure(FailureKind::Changed));
        }
        let whole = self.content.lock_unpoisoned()[&file.path].0.clone();
        let rest = whole.slice(usize::try_from(from).expect("small")..);
        let parts = match fault {
            None | Some(Fault::Fails(_)) => vec![Ok(rest)],
            Some(Fault::Cut(at)) => {
                vec![Ok(rest.slice(..at)), Err(failure(FailureKind::Unavailable))]
            }
            Some(Fault::End(at)) => vec![Ok(rest.slice(..at))],
            Some(Fault::More) => vec![Ok(rest), Ok(Bytes::from_static(b"more"))],
            Some(Fault::Hangs) => std::future::pending().await,
        };
        let bytes = stream::iter(parts).map(move |part| {
            let _ = &reading;
            part
        });
        Ok(OpenFile { bytes: bytes.boxed(), checksum: None })
    }
}

//! Where the files of load requests lie.

use std::{io, sync::Mutex};

use galatea_types::LockExt;
use tempfile::TempDir;

/// One folder in that of temporary files, with one per load request in it. Made when the first is needed.
#[derive(Debug, Default)]
pub(crate) struct OverrideFolders(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    root: Option<TempDir>,
    is_closed: bool,
}

impl OverrideFolders {
    /// A new, empty folder, which only this process may read. It is removed when it is dropped.
    pub fn create(&self) -> io::Result<TempDir> {
        let mut state = self.0.lock_unpoisoned();
        if state.is_closed {
            return Err(io::Error::other("Server exiting"));
        }
        let root = match state.root.take() {
            Some(root) => root,
            None => tempfile::Builder::new().prefix("galatea-models-").tempdir()?,
        };
        let folder = TempDir::new_in(root.path());
        state.root = Some(root);
        folder
    }

    /// Removes what is left, and makes no more: the process ends, whether or not all models are unloaded.
    pub fn close(&self) {
        let mut state = self.0.lock_unpoisoned();
        state.is_closed = true;
        drop(state.root.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_when_it_is_closed() {
        let folders = OverrideFolders::default();
        let (first, second) = (folders.create().expect("made"), folders.create().expect("made"));
        let root = first.path().parent().expect("the root").to_owned();
        assert_eq!(second.path().parent(), Some(&*root));
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && root.exists());
        folders.close();
        assert!(!root.exists(), "though a model still has one");
        folders.create().expect_err("no more");
    }
}

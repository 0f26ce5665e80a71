//! Tests of what a repository asks of its place.

use galatea_types::{Environment, Stop};

use super::*;
use crate::{
    cache::CacheLimit,
    tests::fake_files::{FakeFiles, Fault},
};

fn root(home: &tempfile::TempDir) -> RemoteRoot<FakeFiles> {
    let network =
        crate::network::client(&Environment::default(), Stop::default()).expect("threads");
    let cache = Cache::open(home.path(), CacheLimit::Bytes(1 << 20)).expect("usable");
    let remote = FakeFiles::default();
    for model in ["a", "b"] {
        remote.put(&format!("{model}/config.pbtxt"), b"backend: 'x'".as_slice());
        remote.put(&format!("{model}/1/w"), b"weights".as_slice());
    }
    RemoteRoot::new(remote, Arc::new(network), cache)
}

fn asked(root: &RemoteRoot<FakeFiles>) -> Vec<String> {
    std::mem::take(&mut *root.remote.listed.lock_unpoisoned())
}

/// What one load asks for.
fn load(root: &RemoteRoot<FakeFiles>, model: &str) -> FolderSnapshot {
    assert!(root.holds(model));
    assert_eq!(root.read_text(model, "config.pbtxt").expect("read"), "backend: 'x'");
    let snapshot = root.snapshot(model).expect("listed");
    assert!(root.lease(model).expect("fetched").path().join("1/w").exists());
    snapshot
}

#[test]
fn one_poll_lists_each_model_once() {
    let home = tempfile::tempdir().expect("folder");
    let root = root(&home);
    let look = root.begin_look();
    load(&root, "a");
    assert!(!root.holds("c"));
    assert_eq!(asked(&root), ["list a", "list c"]);
    root.check().expect("there");
    assert_eq!(root.model_names().expect("listed"), ["a", "b"]);
    assert!(root.holds("b") && !root.holds("d"));
    load(&root, "b");
    assert_eq!(asked(&root), ["check", "folders", "list b"]);
    drop(look);
    load(&root, "a");
    assert_eq!(asked(&root), ["holds a", "list a", "list a", "list a"]);
}

#[test]
fn the_next_poll_sees_uploaded_files() {
    let home = tempfile::tempdir().expect("folder");
    let root = root(&home);
    let first = root.begin_look();
    let before = load(&root, "a");
    root.remote.put("a/2/w", b"more".as_slice());
    assert_eq!(root.snapshot("a").expect("listed"), before, "one look, one answer");
    let second = root.begin_look();
    assert_ne!(root.snapshot("a").expect("listed"), before);
    drop((first, second));
}

#[test]
fn a_changing_model_is_listed_again_a_bounded_number_of_times() {
    let home = tempfile::tempdir().expect("folder");
    let root = root(&home);
    let _look = root.begin_look();
    let changed = Fault::Fails(FailureKind::Changed);
    root.remote.break_next("a/1/w", [changed, changed]);
    load(&root, "a");
    assert_eq!(asked(&root), ["list a"; 3]);
    root.remote.break_next("b/1/w", [changed; 9]);
    let error = root.lease("b").expect_err("it changes");
    assert!(
        error.message().starts_with("failed to fetch model 'b' from 'fake://place'"),
        "{error}"
    );
    assert_eq!(asked(&root), ["list b"; 3]);
}

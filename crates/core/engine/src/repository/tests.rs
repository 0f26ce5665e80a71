//! Several roots searched as one.

use galatea_config::testing::without_places;
use std::fs;

use super::*;

fn names(repository: &Repository) -> Vec<String> {
    repository.models().iter().map(ModelId::to_string).collect()
}

#[test]
fn finds_models_and_versions() {
    let root = tempfile::tempdir().expect("temp dir");
    for dir in ["b/1", "b/10", "b/2", "b/configs", "a/1", ".git/1"] {
        fs::create_dir_all(root.path().join(dir)).expect("dir");
    }
    fs::write(root.path().join("b/2/model.onnx"), "").expect("file");
    fs::write(root.path().join("b/1/model.pt"), "").expect("file");
    fs::create_dir(root.path().join("b/1/net.savedmodel")).expect("dir");
    fs::write(root.path().join("b/config.pbtxt"), "backend: \"b\"").expect("file");
    let repository = Repository::new(vec![LocalRoot::at(root.path())], ConfigName::new(""), false);
    assert_eq!(names(&repository), ["a", "b"]);
    let folder = repository.lease(&"b".into()).expect("found");
    assert_eq!(folder.versions, [1, 2, 10]);
    assert_eq!(folder.lowest_version_files(), ["model.pt", "net.savedmodel/"]);
    assert_eq!(repository.read_config(&"b".into()).expect("text"), "backend: \"b\"");
    let missing = repository.read_config(&"a".into()).expect_err("none");
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(repository.find(&"c".into()).expect("readable").is_none());
    let error = repository.lease(&"c".into()).expect_err("no such model");
    assert_eq!(error.message(), "no folder named 'c' in the model repositories");
}

#[test]
fn broken_links_are_neither_models_nor_versions() {
    let root = tempfile::tempdir().expect("temp dir");
    fs::create_dir_all(root.path().join("m/1")).expect("dir");
    for link in ["nowhere", "m/2"] {
        std::os::unix::fs::symlink(root.path().join("gone"), root.path().join(link)).expect("link");
    }
    let repository = Repository::new(vec![LocalRoot::at(root.path())], ConfigName::new(""), false);
    assert_eq!(names(&repository), ["m"]);
    assert_eq!(repository.lease(&"m".into()).expect("found").versions, [1]);
}

#[test]
fn a_model_name_in_two_repositories_is_refused() {
    let (one, two) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    for root in [&one, &two] {
        fs::create_dir_all(root.path().join("m/1")).expect("dir");
    }
    let repository = Repository::new(
        vec![LocalRoot::at(one.path()), LocalRoot::at(two.path())],
        ConfigName::new(""),
        false,
    );
    let error = repository.lease(&"m".into()).expect_err("not unique");
    assert_eq!(
        without_places(error.message()),
        "failed to poll model 'm': not unique across all model repositories"
    );
    assert!(error.message().contains("--model-namespacing"), "{error}");
}

/// A store that is not on this machine: leasing fetches a copy.
#[derive(Debug)]
struct Remote;

impl RepositoryRoot for Remote {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn place(&self) -> String {
        "far://away".to_owned()
    }

    fn model_names(&self) -> io::Result<Vec<String>> {
        Ok(vec!["far".to_owned()])
    }

    fn holds(&self, model: &str) -> bool {
        model == "far"
    }

    fn read_text(&self, _: &str, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn snapshot(&self, _: &str) -> io::Result<FolderSnapshot> {
        Ok(FolderSnapshot::default())
    }

    fn lease(&self, _: &str) -> Result<FolderLease> {
        let copy = tempfile::tempdir().expect("folder");
        fs::create_dir(copy.path().join("3")).expect("folder");
        Ok(FolderLease::new(copy))
    }
}

#[test]
fn a_fetched_copy_is_kept_while_it_is_leased() {
    let local = tempfile::tempdir().expect("folder");
    let repository = Repository::new(
        vec![LocalRoot::at(local.path()), Arc::new(Remote)],
        ConfigName::new(""),
        false,
    );
    assert_eq!(names(&repository), ["far"]);
    let folder = repository.lease(&"far".into()).expect("fetched");
    assert_eq!(folder.versions, [3]);
    let (path, lease) = (folder.version_dir(3), folder.lease());
    drop(folder);
    assert!(path.is_dir(), "a loaded version still needs it");
    drop(lease);
    assert!(!path.exists());
}

#[test]
fn repositories_are_namespaces_if_enabled() {
    let local = tempfile::tempdir().expect("folder");
    for dir in ["far/1", "near/1"] {
        fs::create_dir_all(local.path().join(dir)).expect("folder");
    }
    let roots = vec![LocalRoot::at(local.path()), Arc::new(Remote)];
    let repository = Repository::new(roots, ConfigName::new(""), true);
    let here = local.path().display().to_string();
    assert_eq!(
        names(&repository),
        [format!("{here}::far"), format!("{here}::near"), "far://away::far".to_owned()]
    );
    let listing = repository.list();
    assert_eq!((listing.models.len(), listing.is_complete), (3, true));
    let versions = |id: &ModelId| repository.lease(id).map(|folder| folder.versions);
    let found: Vec<_> =
        repository.named("far").iter().map(|id| versions(id).expect("held")).collect();
    assert_eq!(found, [[1], [3]]);
    assert_eq!(repository.named("near").len(), 1);
    // What a client sends is a name, and never a place.
    for name in ["nowhere", "", "..", "a/far", "far://away::far", &format!("{here}::far")] {
        assert_eq!(repository.named(name), [], "{name}");
    }
    for id in
        [ModelId::global("far"), ModelId::new("elsewhere", "far"), ModelId::new(here, "../far")]
    {
        assert!(repository.find(&id).expect("no error").is_none(), "{id}");
    }
}

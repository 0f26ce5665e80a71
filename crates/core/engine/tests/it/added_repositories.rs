//! Repositories that are added and removed while the server runs.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{path::Path, sync::Arc};

use galatea_engine::{ControlMode, EngineOptions, LoadOverrides, LocalRoot, RepositoryRoot};
use galatea_types::Code;

use crate::fixture::{
    CONFIG, Fixture, add_model, ask, eventually, explicit, fixture, fixture_with, index,
};

fn load(f: &Fixture, name: &str) -> galatea_types::Result<()> {
    f.engine.load_model(name, LoadOverrides::default())
}

/// A repository with one model, which is known as `m`.
fn archive(place: &Path) -> Arc<dyn RepositoryRoot> {
    add_model(place, "model", &[1], &format!("name: \"another\"\n{CONFIG}"));
    LocalRoot::renaming(place, "model", "m")
}

#[test]
fn a_model_of_an_added_repository_is_loaded_under_its_given_name() {
    let place = tempfile::tempdir().expect("folder");
    let f = explicit(|_| ());
    let root = archive(place.path());
    let name = root.place();
    assert!(load(&f, "m").is_err(), "not there yet");
    f.engine.add_repository(root).expect("readable");
    load(&f, "m").expect("loads");
    assert!(ask(&f.engine, 5).is_ok());
    assert_eq!(index(&f.engine), ["m:1:READY:"]);
    assert!(!f.engine.is_unloaded("m"));
    f.engine.unload_model("m", true).expect("unloads");
    eventually("the model is unloaded", || f.engine.is_unloaded("m"));
    f.engine.remove_repository(&name);
    assert_eq!(index(&f.engine), [""; 0]);
    assert!(f.engine.is_ready());
    assert_eq!(load(&f, "m").expect_err("gone").code(), Code::Internal);
}

#[test]
fn a_failed_load_leaves_no_trace_after_its_repository_is_removed() {
    let place = tempfile::tempdir().expect("folder");
    let f = explicit(|_| ());
    let root = archive(place.path());
    std::fs::write(place.path().join("model/1/fails_to_load"), "").expect("written");
    let name = root.place();
    f.engine.add_repository(root).expect("readable");
    assert!(load(&f, "m").is_err());
    assert!(!f.engine.is_ready());
    f.engine.remove_repository(&name);
    assert!(f.engine.is_ready(), "nobody can load it again");
    assert_eq!(index(&f.engine), [""; 0]);
}

#[test]
fn a_repository_path_and_name_can_be_added_once() {
    let (one, two) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
    let f = explicit(|_| ());
    f.engine.add_repository(archive(one.path())).expect("readable");
    let refused = |root| f.engine.add_repository(root).expect_err("refused");
    let again = refused(LocalRoot::renaming(one.path(), "model", "n"));
    let text = format!("model repository '{}' has already been registered", one.path().display());
    assert_eq!((again.code(), again.message()), (Code::AlreadyExists, text.as_str()));
    let taken = refused(archive(two.path()));
    let text = "failed to register 'm', there is a conflicting mapping for 'm'";
    assert_eq!((taken.code(), taken.message()), (Code::AlreadyExists, text));
    let missing = refused(LocalRoot::renaming("/nonexistent/model", "model", "n"));
    let text = "failed to register '/nonexistent/model', repository not found";
    assert_eq!((missing.code(), missing.message()), (Code::InvalidArg, text));
    let given = refused(LocalRoot::renaming(f.root.path(), "model", "n"));
    assert_eq!(given.code(), Code::AlreadyExists, "the repository of the command line");
}

#[test]
fn only_explicit_control_may_add_repositories() {
    let place = tempfile::tempdir().expect("folder");
    for mode in [ControlMode::None, ControlMode::Poll] {
        let f = fixture(mode, &[], |_| ());
        let error = f.engine.add_repository(archive(place.path())).expect_err("refused");
        assert_eq!(error.code(), Code::Unsupported);
    }
}

#[test]
fn added_repositories_with_namespaces_may_share_model_names() {
    let places = [tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder")];
    let options = EngineOptions {
        control_mode: ControlMode::Explicit,
        has_namespaces: true,
        ..EngineOptions::default()
    };
    let f = fixture_with(options, |_| ());
    let roots = ["one", "two"].into_iter().zip(&places).map(|(name, place)| {
        add_model(place.path(), "inner", &[1], CONFIG);
        add_model(place.path(), "model", &[1], CONFIG);
        LocalRoot::renaming(place.path(), "model", name)
    });
    for root in roots.collect::<Vec<_>>() {
        let (place, name) = (root.place(), root.new_name().expect("given").to_owned());
        f.engine.add_repository(root).expect("readable");
        load(&f, &name).expect("loads");
        load(&f, "inner").expect("loads");
        assert!(f.engine.model(&name, None).is_ok());
        if name == "one" {
            assert!(f.engine.model("inner", None).is_ok(), "there is one");
            continue;
        }
        let error = f.engine.model("inner", None).map(drop).expect_err("there are two");
        assert!(error.message().contains("2 identifiers of model 'inner'"), "{error}");
        for model in ["inner", name.as_str()] {
            f.engine.unload_model(model, false).expect("unloads");
        }
        eventually("it is unloaded", || {
            f.engine.is_unloaded(&name) && f.engine.is_unloaded("inner")
        });
        f.engine.remove_repository(&place);
        let error = f.engine.model(&name, None).map(drop).expect_err("gone");
        // Its name does not stay: a client chose it.
        assert_eq!(error.message(), "Request for unknown model: 'two' is not found");
        let error = f.engine.model("inner", None).map(drop).expect_err("unloaded");
        assert_eq!(error.message(), "Request for unknown model: 'inner' is not found");
    }
}

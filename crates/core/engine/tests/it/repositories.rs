//! Where models come from: several repositories, configurations by name, loads that are tried again.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fs, path::Path, sync::atomic::Ordering};

use galatea_config::testing::without_places;
use galatea_engine::{ControlMode, EngineOptions, LoadOverrides, LocalRoot, StartupError};
use galatea_types::Code;

use crate::fixture::{CONFIG, Fixture, add_model, fixture_with, index};

fn explicit() -> EngineOptions {
    EngineOptions { control_mode: ControlMode::Explicit, ..EngineOptions::default() }
}

fn load(f: &Fixture, name: &str) -> galatea_types::Result<()> {
    f.engine.load_model(name, LoadOverrides::default())
}

#[test]
fn a_name_in_two_repositories_is_reported_in_the_index() {
    let other = tempfile::tempdir().expect("folder");
    add_model(other.path(), "m", &[1], CONFIG);
    let options = EngineOptions { repositories: vec![LocalRoot::at(other.path())], ..explicit() };
    let f = fixture_with(options, |root| {
        add_model(root, "m", &[1], CONFIG);
        add_model(root, "n", &[1], CONFIG);
    });
    let rows = ["m:-:UNAVAILABLE:model appears in two or more repositories", "n:-:-:"];
    assert_eq!(index(&f.engine), rows);
    let error = load(&f, "m").expect_err("which one?");
    let text = "failed to load 'm', failed to poll from model repository: failed to poll model 'm': not unique \
                across all model repositories";
    assert_eq!((error.code(), &*without_places(error.message())), (Code::Internal, text));
    assert_eq!(index(&f.engine), rows);
    assert!(f.engine.is_ready());
}

#[test]
fn a_server_with_a_missing_repository_is_not_ready() {
    let options =
        EngineOptions { repositories: vec![LocalRoot::at("/nonexistent/models")], ..explicit() };
    let f = fixture_with(options, |root| add_model(root, "m", &[1], CONFIG));
    let failed = f.engine.load_startup_models().expect_err("one is missing");
    assert!(matches!(failed, StartupError::Aborted(_)), "{failed}");
    assert!(!f.engine.is_live() && !f.engine.is_ready());
    let errors = [
        load(&f, "m").expect_err("not ready"),
        f.engine.unload_model("m", false).expect_err("not ready"),
        f.engine.model("m", None).map(drop).expect_err("not ready"),
        f.engine.statistics(None, None).map(drop).expect_err("not ready"),
        f.engine.repository_index(false).map(drop).expect_err("not ready"),
    ];
    for error in errors {
        assert_eq!((error.code(), error.message()), (Code::Unavailable, "Server not ready"));
    }
}

fn add_config(root: &Path, model: &str, name: &str, max_batch_size: u32) {
    let size = format!("max_batch_size: {max_batch_size}");
    let folder = root.join(model).join("configs");
    fs::create_dir_all(&folder).expect("folder");
    let config = CONFIG.replace("max_batch_size: 4", &size);
    fs::write(folder.join(format!("{name}.pbtxt")), config).expect("config");
}

#[test]
fn a_named_configuration_replaces_config_pbtxt() {
    let options = EngineOptions { model_config_name: "h100".to_owned(), ..explicit() };
    let f = fixture_with(options, |root| {
        for model in ["has_it", "has_none", "broken", "has_only_it"] {
            add_model(root, model, &[1], CONFIG);
        }
        for model in ["has_it", "has_only_it"] {
            add_config(root, model, "h100", 9);
        }
        add_config(root, "has_it", "other", 5);
        fs::remove_file(root.join("has_only_it/config.pbtxt")).expect("removed");
        fs::create_dir(root.join("broken/configs")).expect("folder");
        fs::write(root.join("broken/configs/h100.pbtxt"), "nonsense {}").expect("config");
    });
    for (model, expected) in [("has_it", 9), ("has_none", 4), ("has_only_it", 9)] {
        load(&f, model).expect("loads");
        let config = f.engine.model(model, None).expect("ready").config().clone();
        assert_eq!(config.max_batch_size(), expected, "{model}");
    }
    let error = load(&f, "broken").expect_err("no such field");
    assert!(error.message().contains("broken/configs/h100.pbtxt:1:1"), "{error}");
}

#[test]
fn a_failed_load_is_retried() {
    let failing = |count: &'static str| {
        move |root: &Path| {
            add_model(root, "m", &[1], CONFIG);
            fs::write(root.join("m/1/fails_first"), count).expect("file");
        }
    };
    let options = || EngineOptions { load_retry_count: 2, ..explicit() };
    let f = fixture_with(options(), failing("2"));
    load(&f, "m").expect("the third try succeeds");
    assert_eq!(f.backend.failed_loads.load(Ordering::SeqCst), 2);
    assert_eq!(index(&f.engine), ["m:1:READY:"]);

    let f = fixture_with(options(), failing("3"));
    let error = load(&f, "m").expect_err("two retries are all");
    let text =
        "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: failure 3 of 3;\n";
    assert_eq!(error.message(), text);
    let f = fixture_with(explicit(), failing("1"));
    load(&f, "m").expect_err("nothing is tried again unless asked for");
}

//! Models of one name in several repositories, and the ensembles on them.
#![allow(clippy::expect_used)] // a test may stop where it stands

use galatea_engine::{ControlMode, EngineOptions, LoadOverrides, LocalRoot};
use galatea_types::{Code, Result};

use crate::fixture::{CONFIG, Fixture, add_model, eventually, fixture_with, index, start};

/// An ensemble on `model`.
fn ensemble(model: &str) -> String {
    format!(
        r#"
platform: "ensemble"
max_batch_size: 4
input {{ name: "IN" data_type: TYPE_INT32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_INT32 dims: 1 }}
ensemble_scheduling {{ step {{
  model_name: "{model}"
  model_version: -1
  input_map {{ key: "IN" value: "IN" }}
  output_map {{ key: "OUT" value: "OUT" }}
}} }}
"#
    )
}

struct Namespaces {
    first: tempfile::TempDir,
    /// Its root is the second repository.
    f: Fixture,
}

/// Two repositories with a model and an ensemble each: `m` and `e` in both, and one more ensemble of its own.
fn namespaces(control_mode: ControlMode) -> Namespaces {
    let first = tempfile::tempdir().expect("folder");
    add_model(first.path(), "m", &[1], CONFIG);
    add_model(first.path(), "e", &[1], &ensemble("m"));
    add_model(first.path(), "e1", &[1], &ensemble("m"));
    let repositories = vec![LocalRoot::at(first.path())];
    let options = EngineOptions {
        control_mode,
        repositories,
        has_namespaces: true,
        ..EngineOptions::default()
    };
    let f = fixture_with(options, |root| {
        add_model(root, "m", &[1], CONFIG);
        add_model(root, "e", &[1], &ensemble("m"));
        add_model(root, "e2", &[1], &ensemble("m"));
    });
    Namespaces { first, f }
}

impl Namespaces {
    fn load(&self, name: &str) -> Result<()> {
        self.f.engine.load_model(name, LoadOverrides::default())
    }

    fn infer(&self, name: &str) -> Result<()> {
        let model = self.f.engine.model(name, None)?;
        start(&model, 5).blocking_recv().expect("every request is answered").map(drop)
    }

    /// The error of a request to a name.
    fn refused(&self, name: &str) -> (Code, String) {
        let error = self.infer(name).expect_err(name);
        (error.code(), error.message().to_owned())
    }

    /// The namespace of the model that an ensemble runs on: of the first or of the second repository.
    fn runs_on(&self, ensemble: &str) -> &str {
        let model = self.f.engine.model(ensemble, None).expect("ready");
        let raw = format!("{:?}", model.config().raw());
        let is_in = |root: &tempfile::TempDir| {
            raw.contains(&format!("model_namespace: {:?}", root.path().display().to_string()))
        };
        match (is_in(&self.first), is_in(&self.f.root)) {
            (true, false) => "first",
            (false, true) => "second",
            _ => "neither",
        }
    }
}

const AMBIGUOUS: &str = "There are 2 identifiers of model 'm' in global map, model namespace must be provided to \
                         resolve ambiguity.";

#[test]
fn each_ensemble_uses_the_model_of_its_own_repository() {
    let n = namespaces(ControlMode::Explicit);
    assert_eq!(
        n.refused("m"),
        (Code::InvalidArg, "Request for unknown model: 'm' is not found".into())
    );
    n.load("e1").expect("loads, and both models of the name m");
    n.load("e2").expect("loads");
    assert_eq!((n.runs_on("e1"), n.runs_on("e2")), ("first", "second"));
    assert!(n.infer("e1").is_ok() && n.infer("e2").is_ok());
    assert_eq!(n.refused("m"), (Code::InvalidArg, AMBIGUOUS.to_owned()));
    let statistics = n.f.engine.statistics(Some("m"), None).expect_err("which one?");
    assert_eq!(statistics.message(), "requested model 'm' is not available");
    assert_eq!(n.f.engine.statistics(None, None).expect("of all").len(), 4);
    assert!(!n.f.is_model_ready("m", None));
    n.load("e").expect("both ensembles of the name e");
    assert!(n.refused("e").1.contains("2 identifiers of model 'e'"));
    n.f.engine.unload_model("m", false).expect("both of them");
    let text = "Identifier of model 'm' is not found in global map";
    assert_eq!(n.refused("m"), (Code::NotFound, text.to_owned()));
    let first = n.first.path().display();
    let text = format!("Request for unknown model: '{first}::e1' has no available versions");
    assert_eq!(n.refused("e1"), (Code::NotFound, text));
    eventually("all are unloaded", || {
        index(&n.f.engine).iter().all(|row| row.ends_with(":1:UNAVAILABLE:unloaded"))
    });
    assert_eq!(index(&n.f.engine).len(), 6);
    n.load("m").expect("and the ensembles on them");
    assert_eq!((n.runs_on("e1"), n.runs_on("e2")), ("first", "second"));
}

#[test]
fn an_ensemble_uses_the_only_model_of_that_name_until_its_own_exists() {
    let n = namespaces(ControlMode::Explicit);
    let (here, away) = (n.first.path().join("m"), n.first.path().join(".m"));
    std::fs::rename(&here, &away).expect("moved");
    n.load("e1").expect("loads");
    assert_eq!(n.runs_on("e1"), "second");
    assert!(n.infer("m").is_ok(), "there is one");
    std::fs::rename(&away, &here).expect("moved back");
    n.load("e1").expect("loads");
    assert_eq!(n.runs_on("e1"), "first");
    assert_eq!(n.refused("m").1, AMBIGUOUS);
    n.f.engine.unload_model("e1", true).expect("with the model that only it needed");
    n.infer("m").expect("the other one is there still");
}

#[test]
fn polling_follows_added_and_removed_models() {
    let n = namespaces(ControlMode::Poll);
    n.f.engine.load_startup_models().expect("all of them");
    assert_eq!((n.runs_on("e1"), n.runs_on("e2")), ("first", "second"));
    let (here, away) = (n.first.path().join("m"), n.first.path().join(".m"));
    std::fs::rename(&here, &away).expect("moved");
    n.f.engine.poll_repositories(false);
    assert_eq!((n.runs_on("e1"), n.runs_on("e2")), ("second", "second"));
    assert!(n.infer("m").is_ok());
    std::fs::rename(&away, &here).expect("moved back");
    for _ in 0..2 {
        n.f.engine.poll_repositories(false);
    }
    assert_eq!((n.runs_on("e1"), n.runs_on("e2")), ("first", "second"));
    assert_eq!(n.refused("m").1, AMBIGUOUS);
}

#[test]
fn ensembles_wait_for_every_model_they_might_use() {
    let n = namespaces(ControlMode::Explicit);
    // The first repository's cannot be read, the second's is itself an ensemble: it is loaded late.
    std::fs::write(n.first.path().join("m/config.pbtxt"), "nonsense").expect("written");
    add_model(n.f.root.path(), "m", &[1], &ensemble("base"));
    add_model(n.f.root.path(), "base", &[1], CONFIG);
    n.load("e1").expect("loads");
    assert_eq!(n.runs_on("e1"), "second");
    // By their names alone these four need each other.
    add_model(n.first.path(), "a", &[1], &ensemble("b"));
    add_model(n.first.path(), "b", &[1], CONFIG);
    add_model(n.f.root.path(), "b", &[1], &ensemble("a"));
    add_model(n.f.root.path(), "a", &[1], CONFIG);
    n.load("a").expect("none of them needs itself");
    assert_eq!(n.refused("a").1.split(' ').nth(2), Some("2"));
    // And these do.
    add_model(n.first.path(), "x", &[1], &ensemble("y"));
    add_model(n.first.path(), "y", &[1], &ensemble("x"));
    let error = n.load("x").expect_err("a circle");
    assert!(error.message().contains("circular dependency between ensembles: "), "{error}");
}

#[test]
fn failures_of_all_models_with_the_name_are_reported() {
    let n = namespaces(ControlMode::Explicit);
    let marker = |root: &std::path::Path| std::fs::write(root.join("m/1/fails_to_load"), "");
    marker(n.f.root.path()).expect("written");
    let error = n.load("m").expect_err("the second fails");
    let second = format!("load failed for model '{}::m': ", n.f.root.path().display());
    assert!(error.message().starts_with(&second), "{error}");
    assert!(n.refused("m").1.contains("2 identifiers"), "it could be read");
    n.load("e1").expect("on its own");
    let error = n.load("e2").expect_err("its own has failed");
    let text = format!("depends on '{}::m' which has no loaded version", n.f.root.path().display());
    assert!(error.message().contains(&text), "{error}");
    marker(n.first.path()).expect("written");
    crate::fixture::touch(n.first.path(), "m");
    let error = n.load("m").expect_err("both fail");
    let first = format!("load failed for model '{}::m': ", n.first.path().display());
    assert!(error.message().contains(&first) && error.message().contains(&second), "{error}");
    assert_eq!(error.code(), Code::InvalidArg);
}

#[test]
fn file_names_of_load_requests_do_not_stay_in_memory() {
    let n = namespaces(ControlMode::Explicit);
    let overrides = |file: &str| LoadOverrides {
        config: Some(
            r#"{"backend": "copy", "max_batch_size": 4,
            "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}]}"#
                .to_owned(),
        ),
        files: [(file.to_owned(), b"x".to_vec().into())].into(),
    };
    n.f.engine.load_model("mine", overrides("1/file")).expect("loads");
    assert!(n.infer("mine").is_ok());
    n.f.engine.unload_model("mine", false).expect("unloads");
    let unknown = (Code::InvalidArg, "Request for unknown model: 'mine' is not found".to_owned());
    assert_eq!(n.refused("mine"), unknown);
    n.f.engine.load_model("mine", overrides("1/fails_to_load")).expect_err("fails");
    assert_eq!(n.refused("mine"), unknown);
    // Beside those of the repositories it is one more model of that name.
    n.load("m").expect("both");
    n.f.engine.load_model("m", overrides("1/file")).expect("loads");
    assert!(n.refused("m").1.contains("3 identifiers"));
}

#[test]
fn a_client_cannot_name_a_repository() {
    let n = namespaces(ControlMode::Explicit);
    n.load("e1").expect("loads");
    let first = n.first.path().display().to_string();
    let qualified = format!("{first}::m");
    for name in [qualified.as_str(), &first, "../m", "::m", "m/1"] {
        let unknown = format!("Request for unknown model: '{name}' is not found");
        assert_eq!(n.refused(name), (Code::InvalidArg, unknown));
        assert!(n.load(name).is_err(), "{name}");
        assert!(n.f.engine.statistics(Some(name), None).is_err(), "{name}");
    }
    assert_eq!(n.load(&qualified).expect_err("a path").code(), Code::InvalidArg);
    let unloaded = n.f.engine.unload_model(&qualified, true);
    assert_eq!(unloaded.expect_err("a path").code(), Code::InvalidArg);
    n.infer("e1").expect("nothing was touched");
}

//! Paths in configurations: what a load request may name, and what the repository may.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fs, os::unix::fs::symlink, process::Command};

use galatea_config::testing::without_places;
use galatea_engine::{ControlMode, EngineOptions, LoadOverrides};
use galatea_types::{Code, Error};

use crate::fixture::{CONFIG, Fixture, add_model, explicit, fixture_with};

/// `CONFIG` as JSON, with more fields of the model and of its output.
fn json(fields: &str, of_output: &str) -> LoadOverrides {
    let config = format!(
        r#"{{"backend":"copy","max_batch_size":4,
            "input":[{{"name":"IN","data_type":"TYPE_INT32","dims":[1]}}],
            "output":[{{"name":"OUT","data_type":"TYPE_INT32","dims":[1]{of_output}}}]{fields}}}"#
    );
    LoadOverrides { config: Some(config), ..LoadOverrides::default() }
}

fn labels(path: &str) -> LoadOverrides {
    json("", &format!(r#","label_filename":"{path}""#))
}

fn with_labels(path: &str) -> String {
    CONFIG.replace("name: \"OUT\"", &format!("name: \"OUT\" label_filename: \"{path}\""))
}

fn load(f: &Fixture, overrides: LoadOverrides) -> Result<(), Error> {
    f.engine.load_model("m", overrides)
}

fn label(f: &Fixture, class: usize) -> Option<String> {
    f.engine.model("m", None).expect("ready").label("OUT", class).map(str::to_owned)
}

#[test]
fn label_files_outside_the_model_are_not_read() {
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        fs::write(root.join("outside.txt"), "a secret\n").expect("file");
        fs::create_dir(root.join("m/sub")).expect("folder");
    });
    let outside = f.root.path().join("outside.txt").display().to_string();
    let paths = ["/proc/self/environ", "../outside.txt", "sub/../../outside.txt", &outside];
    for path in paths {
        let error = load(&f, labels(path)).expect_err(path);
        assert_eq!(error.code(), Code::InvalidArg);
        let text = format!(
            "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: label_filename '{path}' \
             of model 'm' must be a relative path that stays inside of the model's folder. To use a file outside \
             of it, put a link to it into the folder (config#/output);\n"
        );
        assert_eq!(error.message(), text);
    }
    for path in paths {
        fs::write(f.root.path().join("m/config.pbtxt"), with_labels(path)).expect("file");
        load(&f, LoadOverrides::default()).expect_err("nor does the repository's configuration");
    }
    f.engine.model("m", None).err().expect("nothing was loaded");
}

#[test]
fn labels_are_read_from_the_model_folder_and_its_links() {
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        fs::write(root.join("shared.txt"), "cat\ndog\n").expect("file");
        fs::write(root.join("m/own.txt"), "one\n").expect("file");
        symlink("../shared.txt", root.join("m/link.txt")).expect("link");
    });
    load(&f, labels("./own.txt")).expect("loads");
    assert_eq!((label(&f, 0), label(&f, 1)), (Some("one".to_owned()), None));
    load(&f, labels("1/../link.txt")).expect("loads");
    assert_eq!(label(&f, 1).as_deref(), Some("dog"));
}

#[test]
fn a_pipe_or_a_huge_label_file_fails_the_load() {
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        let made = Command::new("mkfifo").arg(root.join("m/pipe")).status();
        assert!(made.expect("started").success());
        let huge = fs::File::create(root.join("m/huge")).expect("file");
        huge.set_len(1 << 40).expect("sparse");
    });
    for (file, reason) in
        [("pipe", "not a regular file"), ("huge", "the file is larger than 16777216 bytes")]
    {
        let error = load(&f, labels(file)).expect_err("refused");
        let text = format!("failed to open text file for read m/{file}: {reason};\n");
        assert!(without_places(error.message()).ends_with(&text), "{error}");
    }
}

#[test]
fn every_file_in_a_configuration_must_lie_in_the_model_folder() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    for (field, config) in [
        ("default_model_filename", r#","default_model_filename":"/etc/hostname""#),
        ("default_model_filename", r#","default_model_filename":"../../n/1/model""#),
        ("cc_model_filenames", r#","cc_model_filenames":{"7.5":"../x"}"#),
        (
            "input_data_file",
            r#","model_warmup":[{"name":"w","batch_size":1,"inputs":{"IN":{"input_data_file":"/x"}}}]"#,
        ),
        (
            "data_file",
            r#","sequence_batching":{"state":[{"initial_state":[{"data_file":"../../x"}]}]}"#,
        ),
    ] {
        let error = load(&f, json(config, "")).expect_err(field);
        let text = format!("is at UNAVAILABLE state: Invalid argument: {field} '");
        assert!(error.message().contains(&text), "{error}");
    }
}

const PATHS: &str = r#","model_operations":{"op_library_filename":["/opt/mine.so"]},
    "parameters":{"EXECUTION_ENV_PATH":{"string_value":"/opt/env.tar.gz"}}"#;

#[test]
fn backends_accept_paths_of_the_repository_but_not_of_a_request() {
    let in_repository = "model_operations { op_library_filename: '/opt/ops.so' }";
    let config = format!("{CONFIG} {in_repository}");
    let f = explicit(|root| add_model(root, "m", &[1], &config));
    let trusts = |path: &str| f.backend.paths.lock().expect("no panic").trusts(path);
    load(&f, LoadOverrides::default()).expect("loads");
    assert!(trusts("/opt/ops.so") && trusts("/opt/env.tar.gz"));
    load(&f, json(PATHS, "")).expect("loads");
    assert!(!trusts("/opt/mine.so") && !trusts("/opt/env.tar.gz"));
    assert!(trusts("/opt/ops.so"), "the repository has it");
    let mut with_files = json(PATHS, "");
    with_files.files.insert("1/model".to_owned(), vec![0].into());
    with_files.files.insert("config.pbtxt".to_owned(), b"parameters { key: 'x' }".to_vec().into());
    load(&f, with_files).expect("loads");
    assert!(!trusts("/opt/mine.so"), "files of the request are not the repository's");
}

#[test]
fn a_flag_allows_paths_in_load_requests() {
    let options = EngineOptions {
        control_mode: ControlMode::Explicit,
        allows_override_paths: true,
        ..EngineOptions::default()
    };
    let f = fixture_with(options, |root| add_model(root, "m", &[1], CONFIG));
    load(&f, json(PATHS, "")).expect("loads");
    assert!(f.backend.paths.lock().expect("no panic").trusts("/opt/mine.so"));
    load(&f, labels("/etc/hostname")).expect_err("not labels");
}

//! Environments of models with the Python interpreters of this machine: whatever `python3` on PATH and pyenv
//! offer. Nothing comes from a network: packages are wheels that the tests write.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

mod case;
mod confinement;

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
};

use case::{
    Case, interpreters, make_venv, pack, place_numpy, place_uv, print_in, run, write_program,
    write_wheel,
};

const NOTHING: [PathBuf; 0] = [];

#[test]
fn a_venv_of_every_python_version_works() {
    for found in interpreters() {
        let case = Case::new().with_path("$$TRITON_MODEL_DIRECTORY/env");
        let venv = case.at("model/env");
        make_venv(&found.path, &venv);
        place_numpy(&found.path, &venv);
        let environment = case.resolve().expect("resolved");
        let expected = format!("CPython {} in venv {}", found.version, venv.display());
        assert_eq!(environment.description, expected);
        let code = "import numpy, os, sys\n\
                    print(sys.prefix, numpy.__version__, os.environ['VIRTUAL_ENV'])";
        assert_eq!(print_in(&environment, code), format!("{0} 99.0 {0}", venv.display()));
        println!("used {}", found.path.display());
    }
}

#[test]
fn invalid_values_of_execution_env_path_are_refused() {
    #[track_caller]
    fn check(case: Case, value: &str, expected: &str) -> Case {
        let case = case.with_path(value);
        let message = case.refusal();
        let prefix = format!("parameter EXECUTION_ENV_PATH '{value}': ");
        assert!(message.starts_with(&prefix) && message.contains(expected), "{message}");
        case
    }
    let case = Case::new();
    // The next way to an environment is not tried.
    case.write("model/requirements.txt", "");
    case.write("model/notes.txt", "no environment");
    fs::create_dir(case.at("model/empty")).expect("created");
    let missing = case.at("model/missing").display().to_string();
    let expected = format!("Failed to get the canonical path for {missing}. There is no such");
    let case = check(case, "missing", &expected);
    let case = check(case, "$$TRITON_MODEL_DIRECTORY/empty", "it has no bin/python");
    let case = check(case, "notes.txt", "is not a tar.gz archive; pack the environment with");
    check(case, "s3://bucket/env.tar.gz", "remote environments are not supported");
}

#[test]
fn a_load_succeeds_after_numpy_is_installed() {
    let case = Case::new().with_path("env");
    let python = &interpreters()[0].path;
    make_venv(python, &case.at("model/env"));
    let program = case.at("model/env/bin/python");
    let message = case.refusal();
    let command = format!("install it with: \"{}\" -m pip install numpy", program.display());
    assert!(message.ends_with(&command), "{message}");
    place_numpy(python, &case.at("model/env"));
    assert_eq!(case.resolve().expect("resolved").python, program);
}

#[test]
fn an_interpreter_without_numpy_gets_an_environment_with_numpy() {
    let Some(without) = interpreters().iter().find(|found| !has_numpy(&found.path)) else {
        println!("every interpreter here has numpy");
        return;
    };
    let interpreter = without.path.display().to_string();
    let mut case = Case::new().with("python-interpreter", &interpreter);
    place_uv(&case);
    let environment = case.resolve().expect("built");
    assert_eq!(print_in(&environment, "import numpy; print(numpy.__version__)"), "99.0");
    let expected = format!(" built because {interpreter} has no numpy");
    assert!(environment.description.ends_with(&expected), "{}", environment.description);
    assert_eq!((case.calls("venv --no-project --system-site-packages"), case.calls("pip")), (1, 1));
    assert_eq!(case.resolve().expect("found"), environment, "once for all models");
    assert_eq!(case.calls("venv"), 1);
    // What the operator forbids is advised.
    case = case.with("environment-add-numpy", "false");
    let command = format!("install it with: \"{interpreter}\" -m pip install numpy");
    assert!(case.refusal().ends_with(&command), "{}", case.refusal());
}

#[test]
fn a_failure_to_add_numpy_reports_both_reasons() {
    let Some(without) = interpreters().iter().find(|found| !has_numpy(&found.path)) else {
        println!("every interpreter here has numpy");
        return;
    };
    let case = Case::new().with("python-interpreter", &without.path.display().to_string());
    place_uv(&case);
    case.write("behaviour", "sys.exit('no network')");
    let message = case.refusal();
    for text in ["has no numpy, which every Python model needs; install it with: ", "no network"] {
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(case.cached(), NOTHING);
}

fn has_numpy(python: &Path) -> bool {
    let mut command = std::process::Command::new(python);
    command.args(["-c", "import numpy"]).current_dir("/");
    command.output().expect("started").status.success()
}

#[test]
fn pip_installs_requirements_once() {
    let case = Case::new();
    fs::create_dir(case.at("model/wheels")).expect("created");
    write_wheel(&case.at("model/wheels"), "numpy", "99.0", "__version__ = '99.0'\n");
    write_wheel(&case.at("model/wheels"), "tiny", "1.0", "answer = 42\n");
    let text = "--no-index\n--find-links wheels\ntiny==1.0\n";
    case.write("model/requirements.txt", text);
    let environment = case.resolve().expect("built");
    let code = "import numpy, tiny; print(numpy.__version__, tiny.answer)";
    assert_eq!(print_in(&environment, code), "99.0 42");
    assert!(environment.description.ends_with(" built from its requirements.txt"));
    let cached = case.cached();
    assert_eq!(environment.python, cached[0].join("bin/python"));

    fs::write(cached[0].join("touched"), "").expect("written");
    assert_eq!(case.resolve().expect("found"), environment);
    assert!(cached[0].join("touched").exists(), "not built again");
}

#[test]
fn uv_is_used_if_on_path() {
    let case = Case::new();
    place_uv(&case);
    case.write("model/1/pyproject.toml", "[project]\nname = 'x'\ndependencies = ['tiny>=1']\n");
    let environment = case.resolve().expect("built");
    assert_eq!(print_in(&environment, "import numpy; print(numpy.__version__)"), "99.0");
    let text = fs::read_to_string(case.at("calls")).expect("called");
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("venv --no-project --python "), "{text}");
    assert!(lines[1].starts_with("pip install --python "), "{text}");
    assert!(lines[1].ends_with("/bin/python tiny>=1 numpy"), "{text}");
}

#[test]
fn the_required_python_version_is_used() {
    let case = Case::new();
    place_uv(&case);
    for found in interpreters() {
        symlink(&found.path, case.at(&format!("path/python{}", found.minor()))).expect("linked");
        case.write("model/requirements.txt", &format!("# python: {}\nx\n", found.minor()));
        let environment = case.resolve().expect("built");
        let expected = format!("CPython {} in venv ", found.version);
        assert!(environment.description.starts_with(&expected), "{}", environment.description);
    }
    case.write("model/requirements.txt", "# python: 3.99\n");
    let message = case.refusal();
    let expected = "no Python 3.99 found on PATH or under pyenv (there is 3.";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn an_unfinished_environment_is_rebuilt() {
    let case = Case::new();
    place_uv(&case);
    case.write("model/requirements.txt", "x\n");
    let environment = case.resolve().expect("built");
    let folder = case.cached().remove(0);
    // As an interrupted attempt leaves it: the marker comes last.
    fs::remove_file(folder.join(".galatea-complete")).expect("removed");
    fs::write(folder.join("half"), "").expect("written");
    assert_eq!(case.resolve().expect("built"), environment);
    assert!(!folder.join("half").exists());
    assert_eq!(case.calls("venv"), 2);
    // As it is when the interpreter it was made from is gone.
    fs::remove_file(folder.join("bin/python")).expect("removed");
    symlink("/nowhere/python3", folder.join("bin/python")).expect("linked");
    assert_eq!(case.resolve().expect("built"), environment);
    assert_eq!(case.calls("venv"), 3);
}

#[test]
fn concurrent_requests_build_an_environment_once() {
    let case = Case::new();
    place_uv(&case);
    case.write("model/requirements.txt", "x\n");
    let (started, go) = (case.at("started"), case.at("go"));
    for pipe in [&started, &go] {
        run(Path::new("mkfifo"), &[pipe.as_os_str()]);
    }
    case.write("behaviour", &format!("open({started:?}, 'w').close()\nopen({go:?}).close()\n"));
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| case.resolve());
        File::open(&started).expect("opened").read_to_end(&mut Vec::new()).expect("read");
        // The first holds the lock now, and is held here.
        let second = scope.spawn(|| case.resolve());
        drop(File::options().write(true).open(&go).expect("opened"));
        (first.join().expect("ended"), second.join().expect("ended"))
    });
    assert_eq!(first.expect("built"), second.expect("found"));
    assert_eq!(case.calls("venv"), 1);
}

#[test]
fn a_failed_build_leaves_no_files_and_can_be_retried() {
    #[track_caller]
    fn fails(case: &Case, behaviour: &str, expected: &[&str]) {
        case.write("behaviour", behaviour);
        let message = case.refusal();
        for text in expected {
            assert!(message.contains(text), "{message}");
        }
        assert_eq!(case.cached(), NOTHING);
    }
    let mut case = Case::new();
    place_uv(&case);
    case.write("model/requirements.txt", "x\n");
    let wrong = "print('line')\nsys.exit(3)";
    fails(&case, wrong, &["uv pip failed (exit status: 3)", "lines:\nline"]);
    let data = case.at("data/python-environments").display().to_string();
    let full = "sys.exit('OSError: [Errno 28] No space left on device')";
    fails(&case, full, &["no space left", &data, " MB free", "set GALATEA_HOME"]);
    case = case.with("environment-build-timeout-seconds", "2");
    let slow = "import time; time.sleep(600)";
    fails(&case, slow, &["not done after 2 s", "environment-build-timeout-seconds"]);
    case.backend_config.remove("environment-build-timeout-seconds");
    fs::remove_file(case.at("behaviour")).expect("removed");
    case.resolve().expect("built");
}

#[test]
fn a_read_only_data_folder_is_reported() {
    let mut case = Case::new();
    place_uv(&case);
    case.write("model/requirements.txt", "x\n");
    case.write("file", "");
    let data = case.at("file/data").display().to_string();
    case.variables.insert("GALATEA_HOME".to_owned(), data.clone());
    let message = case.refusal();
    assert!(message.starts_with(&format!("cannot write in '{data}/python-env")), "{message}");
    assert!(message.ends_with("set GALATEA_HOME to a folder that can be written"), "{message}");
}

#[test]
fn a_packed_venv_is_unpacked_once() {
    for inside in ["", "env"] {
        let case = Case::new().with_path("$$TRITON_MODEL_DIRECTORY/env.tar.gz");
        let python = &interpreters()[0].path;
        make_venv(python, &case.at("env"));
        place_numpy(python, &case.at("env"));
        pack(&case.at("env"), inside, &case.at("model/env.tar.gz"));
        fs::remove_dir_all(case.at("env")).expect("removed");
        let environment = case.resolve().expect("unpacked");
        let root = case.cached().remove(0).join(inside);
        let code = format!(
            "import numpy, os, sys; print(numpy.__version__, os.path.samefile(sys.prefix, {root:?}))"
        );
        assert_eq!(print_in(&environment, &code), "99.0 True");

        fs::write(root.join("touched"), "").expect("written");
        assert_eq!(case.resolve().expect("found"), environment);
        assert!(root.join("touched").exists(), "not unpacked again");
        // Packed again, it is another archive.
        pack(&root, "", &case.at("model/env.tar.gz"));
        assert_ne!(case.resolve().expect("unpacked").python, environment.python);
    }
}

#[test]
fn a_conda_pack_archive_runs_its_unpack_script() {
    let case = Case::new().with_path("env.tar.gz");
    for folder in ["env/bin", "env/conda-meta", "env/site/numpy"] {
        fs::create_dir_all(case.at(folder)).expect("created");
    }
    case.write("env/site/numpy/__init__.py", "");
    case.write("env/conda-meta/state", r#"{"env_vars": {"MODE": "fast"}}"#);
    // In place of an interpreter of conda's own.
    let python = interpreters()[0].path.display().to_string();
    let script = format!("#!/bin/sh\nPYTHONPATH=\"${{0%/*}}/../site\" exec '{python}' \"$@\"\n");
    write_program(&case.at("env/bin/python3.11"), &script);
    symlink("python3.11", case.at("env/bin/python")).expect("linked");
    let unpack = "import os\nopen(os.path.dirname(__file__) + '/../corrected', 'w').close()\n";
    write_program(&case.at("env/bin/conda-unpack"), unpack);
    pack(&case.at("env"), "", &case.at("model/env.tar.gz"));
    let environment = case.resolve().expect("unpacked");
    let root = case.cached().remove(0);
    assert!(root.join("corrected").exists());
    assert!(environment.description.contains(" in conda environment "));
    let code = "import numpy, os; print(os.environ['CONDA_PREFIX'], os.environ['MODE'])";
    assert_eq!(print_in(&environment, code), format!("{} fast", root.display()));
}

#[test]
fn an_archive_with_a_link_out_of_its_folder_is_refused() {
    let case = Case::new().with_path("env.tar.gz");
    fs::create_dir_all(case.at("env/lib")).expect("created");
    symlink("/etc", case.at("env/lib/etc")).expect("linked");
    pack(&case.at("env"), "", &case.at("model/env.tar.gz"));
    let expected = format!(
        "parameter EXECUTION_ENV_PATH 'env.tar.gz': cannot unpack '{}': entry 'lib/etc' is a link that leads \
         outside of the folder; pack the environment again without it, or name its folder",
        case.at("model/env.tar.gz").display()
    );
    assert_eq!(case.refusal(), expected);
    assert_eq!(case.cached(), NOTHING);
}

#[test]
fn the_default_environment_serves_models_without_their_own() {
    let mut case = Case::new();
    for name in ["usual", "named", "default"] {
        let python = &interpreters()[0].path;
        make_venv(python, &case.at(name));
        place_numpy(python, &case.at(name));
    }
    let nowhere = case.at("nowhere").display().to_string();
    let (usual, named) = (case.at("usual/bin"), case.at("named/bin"));
    case.backend_config.clear();
    case.variables.insert("PATH".to_owned(), nowhere);
    assert!(case.refusal().starts_with("no python3 on PATH; install Python 3.9"));

    case.variables.insert("PATH".to_owned(), usual.display().to_string());
    let environment = case.resolve().expect("found");
    assert_eq!(environment.python, usual.join("python3"));
    assert!(environment.description.ends_with(&case.at("usual").display().to_string()));

    let case = case.with("python-interpreter", &named.join("python3").display().to_string());
    assert_eq!(case.resolve().expect("found").python, named.join("python3"));

    let default = case.at("default").display().to_string();
    let mut case = case.with("default-environment", &default);
    assert_eq!(case.resolve().expect("found").python, case.at("default/bin/python"));

    case.backend_config.remove("default-environment");
    let case = case.with("python-interpreter", "python9");
    let expected = "--backend-config=python,python-interpreter=python9: no such program on PATH";
    assert_eq!(case.refusal(), expected);
}

/// The cache stays within its limit, except for environments that workers use.
#[test]
fn the_cache_is_pruned_but_environments_in_use_are_kept() {
    let case = Case::new().with("environment-cache-max-byte-size", "1");
    place_uv(&case);
    let build = |requirements: &str| {
        case.write("model/requirements.txt", requirements);
        case.resolve().expect("built")
    };
    let not_used_for_a_day = || {
        let entries = fs::read_dir(case.at("data/python-environments")).expect("read").flatten();
        let locks =
            entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "lock"));
        for lock in locks {
            let file = File::options().append(true).open(lock).expect("opened");
            let day = std::time::Duration::from_secs(86_400);
            file.set_modified(std::time::SystemTime::now() - day).expect("set");
        }
    };
    let first = build("a\n");
    not_used_for_a_day();
    let second = build("b\n");
    assert_eq!(case.cached().len(), 2, "the first is in use");
    let python = first.python.clone();
    drop(first);
    assert!(python.exists(), "nothing is removed when its use ends");
    not_used_for_a_day();
    build("c\n");
    assert!(!python.exists(), "removed when room was needed");
    assert!(second.python.exists(), "still in use");
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_refused_with_the_option() {
    let case = Case::new().with("environment-max-byte-size", "1000").with_path("env.tar.gz");
    fs::create_dir_all(case.at("source/bin")).expect("created");
    fs::write(case.at("source/bin/python"), [0; 2000]).expect("written");
    pack(&case.at("source"), ".", &case.at("model/env.tar.gz"));
    let message = case.refusal();
    assert!(message.contains("more than 1000 bytes"), "{message}");
    assert!(message.contains("environment-max-byte-size"), "{message}");
    assert_eq!(case.cached(), NOTHING);
}

/// Reading a pipe without a writer would block the load for ever.
#[test]
fn a_pipe_is_refused_as_an_environment() {
    let case = Case::new().with_path("pipe");
    run(Path::new("mkfifo"), &[case.at("model/pipe").as_os_str()]);
    let message = case.refusal();
    assert!(message.contains("neither a folder nor a file"), "{message}");
}

//! What programs that come with a model reach while its environment is made: each of these writes a file beside the model
//! unless barriers stand around it.

use std::{fs, path::Path};

use galatea_worker::{IsolationLevel, KernelSupport};

use crate::case::{
    Case, interpreters, make_venv, pack, place_numpy, print_in, write_program, write_wheel,
};

/// Makes the environment without barriers and with them. `prepare` gets a case and the file that is to be written.
#[track_caller]
fn check(prepare: impl Fn(Case, &Path) -> Case) {
    let is_complete = KernelSupport::detect().gaps(IsolationLevel::Strict).is_empty();
    for (case, is_written) in [(Case::new(), true), (Case::new().confined(), !is_complete)] {
        let outside = case.at("outside");
        let case = prepare(case, &outside);
        case.resolve().expect("made");
        assert_eq!(outside.exists(), is_written);
    }
}

/// Python that tries to write the file.
fn writing(outside: &Path) -> String {
    format!("try:\n    open({outside:?}, 'w').close()\nexcept OSError:\n    pass\n")
}

/// What an interpreter runs at its start, as a line of a `.pth` file.
fn at_start(outside: &Path) -> String {
    format!("import os; exec({:?})\n", writing(outside))
}

fn place_at_start(venv: &Path, outside: &Path) {
    let version = interpreters()[0].minor();
    let site = venv.join(format!("lib/python{version}/site-packages"));
    fs::write(site.join("starts.pth"), at_start(outside)).expect("written");
}

#[test]
fn the_models_interpreter_runs_in_the_sandbox() {
    check(|case, outside| {
        let venv = case.at("model/env");
        make_venv(&interpreters()[0].path, &venv);
        place_numpy(&interpreters()[0].path, &venv);
        place_at_start(&venv, outside);
        case.with_path("$$TRITON_MODEL_DIRECTORY/env")
    });
}

#[test]
fn the_script_of_a_packed_environment_runs_in_the_sandbox() {
    check(|case, outside| {
        let (venv, python) = (case.at("env"), &interpreters()[0].path);
        make_venv(python, &venv);
        place_numpy(python, &venv);
        write_program(&venv.join("bin/conda-unpack"), &writing(outside));
        pack(&venv, ".", &case.at("model/env.tar.gz"));
        case.with_path("$$TRITON_MODEL_DIRECTORY/env.tar.gz")
    });
}

#[test]
fn pip_installs_inside_the_sandbox() {
    let case = Case::new().confined();
    fs::create_dir(case.at("model/wheels")).expect("created");
    write_wheel(&case.at("model/wheels"), "numpy", "99.0", "__version__ = '99.0'\n");
    case.write("model/requirements.txt", "--no-index\n--find-links wheels\nnumpy\n");
    let environment = case.resolve().expect("built");
    assert_eq!(print_in(&environment, "import numpy; print(numpy.__version__)"), "99.0");
}

#[test]
fn the_installer_runs_inside_the_sandbox() {
    check(|case, outside| {
        let python = interpreters()[0].path.display();
        let text = format!(
            "#!{python}\nimport glob, os, subprocess, sys\n{}\
             words = sys.argv[1:]\n\
             python = words[words.index('--python') + 1]\n\
             if words[0] == 'venv':\n    \
                 sys.exit(subprocess.call([python, '-m', 'venv', '--without-pip', words[-1]]))\n\
             root = os.path.dirname(os.path.dirname(python))\n\
             site = glob.glob(os.path.join(root, 'lib', 'python3.*', 'site-packages'))[0]\n\
             os.makedirs(os.path.join(site, 'numpy-99.0.dist-info'))\n\
             os.makedirs(os.path.join(site, 'numpy'))\n\
             open(os.path.join(site, 'numpy', '__init__.py'), 'w').close()\n\
             with open(os.path.join(site, 'numpy-99.0.dist-info', 'METADATA'), 'w') as file:\n    \
                 file.write('Metadata-Version: 2.1\\nName: numpy\\nVersion: 99.0\\n')\n",
            writing(outside)
        );
        write_program(&case.at("path/uv"), &text);
        case.write("model/requirements.txt", "numpy\n");
        case
    });
}

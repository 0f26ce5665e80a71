//! A model folder, a data folder and interpreters for one test of environments.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use flate2::{Compression, write::GzEncoder};
use galatea_backend_python::environment::{Confinement, Environment, EnvironmentRequest, resolve};
use galatea_runtimes::ProgressMaker;
use galatea_types::{Environment as Variables, Result};
use galatea_worker::{IsolationLevel, Sandbox};

/// A model, a data folder and a PATH of its own.
pub struct Case {
    folder: tempfile::TempDir,
    pub parameters: BTreeMap<String, String>,
    pub backend_config: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    pub confinement: Confinement,
}

impl Case {
    pub fn new() -> Self {
        let mut case = Self {
            folder: tempfile::tempdir().expect("folder"),
            parameters: BTreeMap::new(),
            backend_config: BTreeMap::new(),
            variables: BTreeMap::new(),
            confinement: Confinement::none(),
        };
        for folder in ["model/1", "path"] {
            fs::create_dir_all(case.at(folder)).expect("created");
        }
        for (name, folder) in [("GALATEA_HOME", "data"), ("PATH", "path")] {
            case.variables.insert(name.to_owned(), case.at(folder).display().to_string());
        }
        case.with("python-interpreter", &interpreters()[0].path.display().to_string())
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).expect("written");
    }

    /// With a setting of the backend.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.backend_config.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With `EXECUTION_ENV_PATH`.
    pub fn with_path(mut self, value: &str) -> Self {
        self.parameters.insert("EXECUTION_ENV_PATH".to_owned(), value.to_owned());
        self
    }

    pub fn resolve(&self) -> Result<Environment> {
        let request = EnvironmentRequest {
            model_name: "../$(reboot); `x`",
            model_dir: &self.at("model"),
            version_dir: &self.at("model/1"),
            parameters: &self.parameters,
            paths: &galatea_backend::PathRules::anywhere(),
            backend_config: &self.backend_config,
            confinement: &self.confinement,
            progress: &ProgressMaker::default(),
        };
        resolve(&request, &Variables::of(self.variables.clone()))
    }

    /// With the barriers of `--python-isolation=strict` around what comes with the model.
    pub fn confined(mut self) -> Self {
        let [readable, writable, secret] = [const { Vec::new() }; 3];
        let sandbox = Sandbox { level: IsolationLevel::Strict, readable, writable, secret };
        self.confinement = Confinement { sandbox: Some(sandbox), ..Confinement::none() };
        // The installers have the settings of this process, whose paths they may read.
        let settings = env::vars().filter(|(name, _)| name.starts_with("PIP_"));
        self.variables.extend(settings);
        self
    }

    #[track_caller]
    pub fn refusal(&self) -> String {
        self.resolve().expect_err("refused").message().to_owned()
    }

    /// Folders in the cache.
    pub fn cached(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.at("data/python-environments")) else {
            return Vec::new();
        };
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// How often the program of [`place_uv`] was called so.
    pub fn calls(&self, kind: &str) -> usize {
        let text = fs::read_to_string(self.at("calls")).expect("called");
        text.lines().filter(|line| line.starts_with(kind)).count()
    }
}

pub struct Interpreter {
    pub path: PathBuf,
    pub version: String,
}

impl Interpreter {
    pub fn minor(&self) -> &str {
        self.version.rsplit_once('.').expect("three numbers").0
    }
}

/// One interpreter of every minor version there is, that of `python3` first.
pub fn interpreters() -> &'static [Interpreter] {
    static FOUND: LazyLock<Vec<Interpreter>> = LazyLock::new(find_interpreters);
    &FOUND
}

fn find_interpreters() -> Vec<Interpreter> {
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let versions = versions.into_iter().flatten().flatten();
    let mut paths: Vec<_> = versions.map(|entry| entry.path().join("bin/python3")).collect();
    paths.sort();
    paths.insert(0, "python3".into());
    let mut found: Vec<Interpreter> = Vec::new();
    for path in paths {
        let code = "import platform, sys; assert sys.version_info >= (3, 9); \
                    print(sys.executable, platform.python_version())";
        let Ok(output) = Command::new(&path).args(["-c", code]).output() else { continue };
        let text = String::from_utf8(output.stdout).expect("text");
        let Some((path, version)) = text.trim().rsplit_once(' ') else { continue };
        let one = Interpreter { path: path.into(), version: version.to_owned() };
        if found.iter().all(|other| other.minor() != one.minor()) {
            found.push(one);
        }
    }
    assert!(!found.is_empty(), "these tests need a Python of 3.9 or newer");
    found
}

pub fn run(program: &Path, arguments: &[&OsStr]) {
    let status = Command::new(program).args(arguments).status().expect("started");
    assert!(status.success(), "{} {arguments:?}", program.display());
}

/// What `code` prints in the environment.
#[track_caller]
pub fn print_in(environment: &Environment, code: &str) -> String {
    let mut command = Command::new(&environment.python);
    command.args(["-c", code]).envs(environment.variables.iter().cloned()).current_dir("/");
    let output = command.output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Python code that puts a package called numpy into the site-packages of a venv.
const PLACE_NUMPY: &str = "
import glob, os
def place_numpy(folder):
    site = glob.glob(os.path.join(folder, 'lib', 'python3.*', 'site-packages'))[0]
    os.makedirs(os.path.join(site, 'numpy'), exist_ok=True)
    os.makedirs(os.path.join(site, 'numpy-99.0.dist-info'), exist_ok=True)
    with open(os.path.join(site, 'numpy', '__init__.py'), 'w') as file:
        file.write('__version__ = \"99.0\"\\n')
    with open(os.path.join(site, 'numpy-99.0.dist-info', 'METADATA'), 'w') as file:
        file.write('Metadata-Version: 2.1\\nName: numpy\\nVersion: 99.0\\n')
";

pub fn make_venv(python: &Path, folder: &Path) {
    let words = ["-m", "venv", "--without-pip"].map(OsStr::new);
    run(python, &[&words[..], &[folder.as_os_str()]].concat());
}

pub fn place_numpy(python: &Path, folder: &Path) {
    let code = format!("{PLACE_NUMPY}\nimport sys\nplace_numpy(sys.argv[1])");
    run(python, &[OsStr::new("-c"), OsStr::new(&code), folder.as_os_str()]);
}

/// A program called uv that keeps a record of how it was called, makes a real venv, and installs nothing but
/// something called numpy. The file `behaviour` may hold Python code to run before.
pub fn place_uv(case: &Case) {
    let text = format!(
        r#"#!{python}
import os, subprocess, sys
{PLACE_NUMPY}
arguments = sys.argv[1:]
with open({calls:?}, "a") as calls:
    calls.write(" ".join(arguments) + "\n")
python = arguments[arguments.index("--python") + 1]
if arguments[0] == "venv":
    sys.exit(subprocess.call([python, "-m", "venv", "--without-pip", arguments[-1]]))
if os.path.exists({behaviour:?}):
    exec(open({behaviour:?}).read())
place_numpy(os.path.dirname(os.path.dirname(python)))
"#,
        python = interpreters()[0].path.display(),
        calls = case.at("calls"),
        behaviour = case.at("behaviour"),
    );
    write_program(&case.at("path/uv"), &text);
}

pub fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("allowed");
}

/// A pure Python wheel with one module.
pub fn write_wheel(folder: &Path, name: &str, version: &str, module: &str) {
    let file = File::create(folder.join(format!("{name}-{version}-py3-none-any.whl")));
    let mut wheel = zip::ZipWriter::new(file.expect("created"));
    let information = format!("{name}-{version}.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    let tags = "Wheel-Version: 1.0\nGenerator: by-hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let record = format!("{information}/RECORD");
    let mut files = vec![
        (format!("{name}/__init__.py"), module.to_owned()),
        (format!("{information}/METADATA"), metadata),
        (format!("{information}/WHEEL"), tags.to_owned()),
    ];
    let list = files.iter().map(|(name, _)| format!("{name},,\n")).collect::<String>();
    files.push((record.clone(), format!("{list}{record},,\n")));
    for (name, text) in files {
        wheel.start_file(name, zip::write::SimpleFileOptions::default()).expect("started");
        wheel.write_all(text.as_bytes()).expect("written");
    }
    wheel.finish().expect("finished");
}

/// A tar.gz of a folder, with `inside` before every name.
pub fn pack(source: &Path, inside: &str, archive: &Path) {
    let file = GzEncoder::new(File::create(archive).expect("created"), Compression::fast());
    let mut builder = tar::Builder::new(file);
    builder.follow_symlinks(false);
    builder.append_dir_all(inside, source).expect("packed");
    builder.into_inner().expect("packed").finish().expect("finished");
}

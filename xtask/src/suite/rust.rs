//! The tests in Rust, by cargo-nextest where it is installed.

use std::process::Command;

use anyhow::Result;

use crate::{demo::SHARED_GRAPH, process, setup};

/// cargo with a Python that has numpy, which the Python backend's own tests want.
fn cargo() -> Command {
    let mut cargo = process::cargo();
    cargo.env("GALATEA_TEST_PYTHON", setup::python());
    cargo
}

fn has_nextest() -> bool {
    process::output(process::cargo().args(["nextest", "--version"])).is_ok_and(|(ok, _)| ok)
}

/// All tests of the workspace; all that fail are told, not only the first.
pub fn workspace() -> Result<()> {
    if has_nextest() {
        // Examples are compiled by clippy alone.
        let tests =
            ["nextest", "run", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
        process::run(cargo().args(tests).args(SHARED_GRAPH))?;
        return process::run(
            cargo().args(["test", "--workspace", "--doc", "--quiet"]).args(SHARED_GRAPH),
        );
    }
    process::run(cargo().args(["test", "--workspace", "--quiet"]).args(SHARED_GRAPH))
}

/// The tests of one package whose names contain `name`.
pub fn one(package: &str, name: &str) -> Result<()> {
    if has_nextest() {
        let expression = format!("test(/(^|::){name}/)");
        return process::run(cargo().args([
            "nextest",
            "run",
            "--package",
            package,
            "-E",
            &expression,
        ]));
    }
    process::run(cargo().args(["test", "--package", package, "--quiet", name]))
}

//! Runs the tests in Rust, with cargo-nextest if it is installed.

use std::process::Command;

use anyhow::Result;

use crate::{demo::SHARED_GRAPH, process, setup};

/// Returns cargo with a Python that has numpy, which the Python backend's own tests need.
fn cargo() -> Command {
    let mut cargo = process::cargo();
    cargo.env("GALATEA_TEST_PYTHON", setup::python());
    cargo
}

fn has_nextest() -> bool {
    process::output(process::cargo().args(["nextest", "--version"])).is_ok_and(|(ok, _)| ok)
}

/// Runs all tests of the workspace, and reports all failures, not only the first.
pub fn workspace() -> Result<()> {
    if has_nextest() {
        // Only clippy compiles the examples.
        let tests =
            ["nextest", "run", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
        process::run(cargo().args(tests).args(SHARED_GRAPH))?;
        return process::run(
            cargo().args(["test", "--workspace", "--doc", "--quiet"]).args(SHARED_GRAPH),
        );
    }
    process::run(cargo().args(["test", "--workspace", "--quiet"]).args(SHARED_GRAPH))
}

/// A test program that cargo compiles.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub package: String,
    /// Name in the folder `tests`; `None`: the tests in the sources.
    pub test: Option<String>,
    /// The package has a library, whose sources have the tests, and no program.
    pub has_library: bool,
}

impl Target {
    /// Returns cargo's arguments for the target. The program is named too: dependencies have the features that it needs, and
    /// would be compiled again for a crate alone.
    fn arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["--package", &self.package];
        match &self.test {
            Some(test) => arguments.extend(["--test", test]),
            None if self.has_library => arguments.push("--lib"),
            None if self.package == "galatea" => arguments.push("--bins"),
            None => return arguments,
        }
        arguments.extend(["--package", "galatea"]);
        arguments.extend(SHARED_GRAPH);
        arguments
    }
}

/// Runs the tests of one target whose names contain `name`.
pub fn one(target: &Target, name: &str) -> Result<()> {
    if has_nextest() {
        let expression = format!("test(/(^|::){name}/)");
        return process::run(
            cargo().args(["nextest", "run", "-E", &expression]).args(target.arguments()),
        );
    }
    process::run(cargo().args(["test", "--quiet"]).args(target.arguments()).arg(name))
}

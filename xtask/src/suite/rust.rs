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

/// A program of tests that cargo compiles.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub package: String,
    /// Of the folder `tests`; None: the tests that lie in the sources.
    pub test: Option<String>,
    /// The package has a library, whose sources have the tests, and no program of its own.
    pub has_library: bool,
}

impl Target {
    /// What selects it for cargo. The program is named beside it, because dependencies have the features that it asks for, and
    /// would be compiled anew for a crate alone.
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

/// The tests of one target whose names contain `name`.
pub fn one(target: &Target, name: &str) -> Result<()> {
    if has_nextest() {
        let expression = format!("test(/(^|::){name}/)");
        return process::run(
            cargo().args(["nextest", "run", "-E", &expression]).args(target.arguments()),
        );
    }
    process::run(cargo().args(["test", "--quiet"]).args(target.arguments()).arg(name))
}

//! Builds and runs only the tests that a fault names.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::{
    patch::NamedTest,
    tree::{Target, Tree},
};
use crate::{demo::SHARED_GRAPH, process, setup};

/// Seconds after which a test that hangs counts as failed. The fault may be a lost wake-up.
const LIMIT: &str = "300";
const PROGRAM: &str = "galatea";

/// The outcome of building and running some tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    DoesNotCompile,
    Warns,
    /// No test of this name ran.
    NoTest,
}

impl Outcome {
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "passes",
            Self::Failed => "fails",
            Self::DoesNotCompile => "does not compile",
            Self::Warns => "compiles with a warning",
            Self::NoTest => "no test of this name ran",
        }
    }
}

impl Tree {
    /// Builds a target and runs tests in it.
    pub fn run(&self, target: &Target, tests: &[&NamedTest]) -> Result<Outcome> {
        let selected = target.arguments();
        let built = match target {
            Target::Program => {
                self.cargo(&["build", "--package", PROGRAM]).args(SHARED_GRAPH).output()
            }
            _ => self.cargo(&["test", "--no-run"]).args(&selected).output(),
        };
        let built = built.context("cannot start cargo")?;
        let messages = String::from_utf8_lossy(&built.stderr);
        if !built.status.success() {
            eprintln!("{messages}");
            return Ok(Outcome::DoesNotCompile);
        }
        if messages.lines().any(|line| line.starts_with("warning: ")) {
            eprintln!("{messages}");
            return Ok(Outcome::Warns);
        }
        let (mut command, output_of_none) = match target {
            Target::Program => (self.pytest(tests)?, "no tests ran"),
            _ if has_nextest() => (self.nextest(&selected, tests), "no tests to run"),
            _ => (self.cargo_test(&selected, tests), "running 0 tests"),
        };
        let (is_good, output) = process::output(&mut command)?;
        let is_left_out = *target == Target::Program && is_good && !output.contains(" passed");
        if output.contains(output_of_none) || is_left_out {
            return Ok(Outcome::NoTest);
        }
        Ok(if is_good { Outcome::Passed } else { Outcome::Failed })
    }

    fn cargo(&self, args: &[&str]) -> Command {
        let mut cargo = self.command(cargo_program(), "");
        cargo.args(args).env("GALATEA_TEST_PYTHON", setup::python());
        cargo
    }

    fn limited_cargo(&self, args: &[&str]) -> Command {
        let mut command = self.command("timeout", "");
        command.args(["--kill-after=10", LIMIT]).arg(cargo_program()).args(args);
        command.env("GALATEA_TEST_PYTHON", setup::python());
        command
    }

    fn nextest(&self, selected: &[String], tests: &[&NamedTest]) -> Command {
        let mut command =
            self.limited_cargo(&["nextest", "run", "--no-fail-fast", "--no-tests=fail"]);
        let is_named = |test: &&NamedTest| format!("test(/(^|::){}$/)", path(test));
        let filter: Vec<String> = tests.iter().map(is_named).collect();
        command.args(selected).args(["-E", &filter.join(" + ")]);
        command
    }

    fn cargo_test(&self, selected: &[String], tests: &[&NamedTest]) -> Command {
        let mut command = self.limited_cargo(&["test", "--no-fail-fast"]);
        command.args(selected).arg("--").args(tests.iter().map(|test| path(test)));
        command
    }

    /// Returns a pytest command like that of `cargo xtask test`, for the copy of the tree.
    fn pytest(&self, tests: &[&NamedTest]) -> Result<Command> {
        let mut command = self.command("timeout", "tests/python");
        command
            .args(["--kill-after=10", LIMIT])
            .arg(setup::python())
            .args(["-m", "pytest", "-q", "--numprocesses=0"])
            .args(tests.iter().map(|test| path(test)))
            .env("GALATEA", self.build.join("debug").join(PROGRAM))
            .env("GALATEA_XTASK", std::env::current_exe()?)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }
}

impl Target {
    /// Returns the arguments that select the target. The program goes with each package, so that its crates get the program's
    /// features and are built once for all.
    fn arguments(&self) -> Vec<String> {
        let (package, target) = match self {
            Self::Program => return Vec::new(),
            Self::Unit { package, is_program: true } => (package, vec!["--bins"]),
            Self::Unit { package, .. } => (package, vec!["--lib"]),
            Self::Integration { package, name } => (package, vec!["--test", name]),
        };
        let packages = ["--package", package, "--package", PROGRAM];
        packages.into_iter().chain(SHARED_GRAPH).chain(target).map(str::to_owned).collect()
    }
}

fn path(test: &NamedTest) -> &str {
    match test {
        NamedTest::Rust { path, .. } => path,
        NamedTest::Python { node } => node,
    }
}

fn cargo_program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

fn has_nextest() -> bool {
    process::output(process::cargo().args(["nextest", "--version"])).is_ok_and(|(ok, _)| ok)
}

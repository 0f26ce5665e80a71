//! `cargo xtask coverage`: lists the lines that a tier of the tests runs, by crate.

mod figures;
mod llvm;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::{figures::Figures, llvm::Llvm};
use crate::{crates::Crates, demo::SHARED_GRAPH, process};

/// Counts are written while the program runs, so that a server that a test kills is counted too. Processes of one program share
/// a file, so there are as many files as programs at most.
const COUNTS: &str = "%m%c.profraw";

/// A script that cargo starts instead of the compiler, only for crates of the workspace.
const WRAPPER: &str = "\
#!/bin/sh
compiler=\"$1\"
shift
exec \"$compiler\" \"$@\" -C instrument-coverage -C llvm-args=-runtime-counter-relocation
";

#[derive(Debug, PartialEq, Eq)]
struct Options {
    tier: String,
    against: Option<PathBuf>,
    /// Runs nothing, and reports the counts of the last run again.
    is_report: bool,
    /// Keeps the counts of the last run, and adds this run to them.
    is_addition: bool,
    /// Further arguments of `cargo xtask test`.
    more: Vec<String>,
}

/// `[--tier commit|peers|measure|all] [--add] [--against FILE] [--report] [-- OPTIONS]`: words after `--` are for
/// `cargo xtask test`. With `--add` the figures are those of this run and the earlier ones together.
pub fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let before = options.against.as_deref().map(Figures::read).transpose()?;
    let llvm = Llvm::find()?;
    let home = process::root().join("target/coverage");
    let has_passed = if options.is_report { true } else { run_tier(&options, &home)? };
    let name = if options.is_addition { "sum" } else { &options.tier };
    let profile = home.join(format!("{name}.profdata"));
    llvm.merge(&home.join("raw"), &profile)?;
    let export = llvm.export(&profile, &objects(&home)?)?;
    let figures = Figures::of_export(&export, &Crates::read()?)?;
    let file = home.join(format!("{name}.json"));
    figures.write(name, &file)?;
    print!("{}", figures.table(before.as_ref()));
    println!("coverage: written to {}", file.display());
    if let Some(before) = &before {
        figures.check_against(before)?;
    }
    if !has_passed {
        bail!("tests of the tier {} failed; the figures are of what ran", options.tier);
    }
    Ok(())
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        tier: "commit".to_owned(),
        against: None,
        is_report: false,
        is_addition: false,
        more: Vec::new(),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--tier" => {
                let tier = args.next().context("--tier needs commit, peers, measure or all")?;
                if !["commit", "peers", "measure", "all"].contains(&tier.as_str()) {
                    bail!("there is no tier '{tier}': write commit, peers, measure or all");
                }
                options.tier.clone_from(tier);
            }
            "--against" => {
                let file = args.next().context("--against needs a file of an earlier run")?;
                options.against = Some(file.into());
            }
            "--report" => options.is_report = true,
            "--add" => options.is_addition = true,
            "--" => options.more = args.by_ref().cloned().collect(),
            other => bail!("coverage does not know '{other}': see cargo xtask help"),
        }
    }
    Ok(options)
}

/// Runs the tests of a tier with programs that count. Returns true if all passed.
fn run_tier(options: &Options, home: &Path) -> Result<bool> {
    let raw = home.join("raw");
    if raw.exists() && !options.is_addition {
        fs::remove_dir_all(&raw)?;
    }
    fs::create_dir_all(&raw)?;
    let mut tests = Command::new(std::env::current_exe()?);
    tests.arg("test").args(match options.tier.as_str() {
        "commit" => None,
        tier => Some(format!("--{tier}")),
    });
    count(&mut tests, home)?.args(&options.more).env("LLVM_PROFILE_FILE", raw.join(COUNTS));
    Ok(process::status(&mut tests)?.success())
}

/// Makes a command, and each cargo that it starts, build programs that count.
fn count<'a>(command: &'a mut Command, home: &Path) -> Result<&'a mut Command> {
    let wrapper = home.join("counting-compiler");
    fs::create_dir_all(home)?;
    // An unchanged file is not written, so that cargo rebuilds nothing.
    if !fs::read_to_string(&wrapper).is_ok_and(|text| text == WRAPPER) {
        fs::write(&wrapper, WRAPPER)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    }
    // The build scripts of the workspace run and count too. Their counts go to another folder.
    let elsewhere = home.join("build-scripts").join(COUNTS);
    Ok(command
        .env("CARGO_TARGET_DIR", home.join("build"))
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
        .env("LLVM_PROFILE_FILE", elsewhere))
}

/// Returns the program and all tests in Rust, which are already built.
fn objects(home: &Path) -> Result<Vec<PathBuf>> {
    let mut cargo = process::cargo();
    cargo.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-run"]);
    cargo.arg("--message-format=json-render-diagnostics").args(SHARED_GRAPH);
    let output = count(&mut cargo, home)?.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the tests cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let executables =
        messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    // The tier measure tests the release build of the program.
    let released = home.join("build/release/galatea");
    Ok(executables.chain(released.is_file().then_some(released)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_after_two_dashes_are_for_the_tests() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let line = words("--tier peers --add --against a.json -- --only x");
        let found = options(&line).expect("good");
        let against = Some(PathBuf::from("a.json"));
        let more = words("--only x");
        let tier = "peers".to_owned();
        let expected = Options { tier, against, is_report: false, is_addition: true, more };
        assert_eq!(found, expected);
        assert!(options(&words("--tier often")).is_err() && options(&words("--what")).is_err());
    }
}

//! Packages for the client examples in other languages: npm packages, and Go. Java is used if present.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use super::{
    environment, listing,
    steps::{dir, place, step},
};
use crate::process;

/// Prepares the languages. One that this machine cannot have is reported, and its example is left out.
pub fn languages() -> Result<()> {
    for (what, result) in [("JavaScript", javascript()), ("Go", go())] {
        if let Err(error) = result {
            eprintln!("setup: without {what}, the client example in it is left out: {error:#}");
        }
    }
    Ok(())
}

/// Installs the packages of the example in a folder, next to which the test puts the example.
fn javascript() -> Result<()> {
    let npm = process::which(&["npm"]).context("npm is not on PATH")?;
    let example = process::root().join("examples/clients/javascript");
    let lock = fs::read_to_string(example.join("package-lock.json"))?;
    let folder = dir().join("client-javascript");
    step("client-javascript", &lock, || {
        for file in ["package.json", "package-lock.json"] {
            place(&example.join(file), &folder.join(file))?;
        }
        let options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
        process::run(Command::new(npm).args(options).current_dir(&folder))
    })
}

/// Installs Go and compiles its library, which takes most of the first build.
fn go() -> Result<()> {
    let list = listing("go.txt")?;
    let folder = environment("go")?;
    step("client-go", &list, || {
        let find = "import go, os; print(os.path.dirname(go.__file__))";
        let (ok, root) =
            process::output(Command::new(folder.join("bin/python")).args(["-c", find]))?;
        anyhow::ensure!(ok, "{root}");
        let go = dir().join("client-go/root");
        fs::create_dir_all(dir().join("client-go"))?;
        let _ = fs::remove_file(&go);
        std::os::unix::fs::symlink(root.trim(), &go)?;
        process::run(
            Command::new(go.join("bin/go"))
                .args(["build", "-o", "/dev/null", "."])
                .current_dir(process::root().join("examples/clients/go"))
                .envs([("GOTOOLCHAIN", "local"), ("GOPROXY", "off"), ("GOTELEMETRY", "off")])
                .env("GOCACHE", dir().join("client-go/cache"))
                .env("GOPATH", dir().join("client-go/path")),
        )
    })
}

//! `cargo xtask test`: the suite, in three tiers.
//!
//! The tier *commit* needs only this server and tests every change. The tier *peers* needs other programs: Triton, browsers,
//! other languages. The tier *measure* measures times; it prints a trend and fails nothing.

mod checks;
mod only;
mod options;
mod python;
pub mod report;
mod rust;

use std::{path::PathBuf, thread, time::Instant};

use anyhow::{Result, bail};

use crate::{
    demo, docs,
    setup::{self, Tier},
};

pub use self::checks::{advisories, deny};
use self::options::{Options, What};

/// Runs the tiers in the arguments, or one test.
#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
pub fn run(args: &[String]) -> Result<()> {
    let started = Instant::now();
    let options = Options::parse(args)?;
    match &options.what {
        What::Test(name) => only::run(name, &options.pytest)?,
        What::Tiers(tiers) => {
            for tier in tiers {
                tier_tests(*tier, &options.pytest)?;
            }
        }
    }
    println!("test: all passed in {} s", started.elapsed().as_secs());
    Ok(())
}

fn tier_tests(tier: Tier, pytest: &[String]) -> Result<()> {
    match tier {
        Tier::Commit => commit(pytest),
        Tier::Peers => {
            let galatea = timed("setup and build", || prepare(tier, demo::build))?;
            timed("site of the documentation", || docs::run(&[]))?;
            timed("tier peers", || python::tier(&galatea, tier, pytest))
        }
        Tier::Measure => {
            let galatea = timed("setup and build", || prepare(tier, demo::build_release))?;
            timed("tier measure", || python::measure(&galatea, pytest))
        }
    }
}

/// Runs the tier. Rust tests are compiled while Python tests run, which mostly wait for servers.
fn commit(pytest: &[String]) -> Result<()> {
    let galatea = timed("setup and build", || prepare(Tier::Commit, demo::build))?;
    thread::scope(|scope| {
        let python = scope.spawn(|| {
            timed("worker alone, in each Python", python::worker)?;
            timed("tests in Python", || python::tier(&galatea, Tier::Commit, pytest))
        });
        let rust = timed("tests in Rust", rust::workspace);
        let python =
            python.join().unwrap_or_else(|_| bail!("the thread of the tests in Python panicked"));
        both(rust, python)
    })
}

/// Returns the program under test, and prepares everything that the tests of a tier need.
fn prepare(tier: Tier, build: fn() -> Result<PathBuf>) -> Result<PathBuf> {
    // The packages are fetched while the program is compiled.
    let galatea = thread::scope(|scope| {
        let setup = scope.spawn(|| setup::for_tier(tier));
        let galatea = build();
        let setup = setup.join().unwrap_or_else(|_| bail!("the thread of the setup panicked"));
        setup.and(galatea)
    })?;
    demo::install_runtime(&galatea)?;
    setup::engines::install(&galatea)?;
    Ok(galatea)
}

/// Reports both failures, if there are two.
fn both(first: Result<()>, second: Result<()>) -> Result<()> {
    match (first, second) {
        (Err(first), Err(second)) => bail!("{first:#}; {second:#}"),
        (first, second) => first.and(second),
    }
}

#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let result = work();
    println!("test: {what}: {} s", started.elapsed().as_secs());
    result
}

//! `cargo xtask bench`: runs `tests/bench/bench.py`, which measures.

use std::process::Command;

use anyhow::Result;

use crate::{
    demo, process,
    setup::{self, Tier},
};

pub fn run(args: &[String]) -> Result<()> {
    setup::for_tier(Tier::Measure)?;
    let galatea = demo::build_release()?;
    demo::install_runtime(&galatea)?;
    let script = process::root().join("tests/bench/bench.py");
    process::run(Command::new(setup::python()).arg(script).arg("--server").arg(galatea).args(args))
}

//! `cargo xtask soak`: runs `tests/soak/soak.py`, a long run under mixed load, against a release build.

use std::process::Command;

use anyhow::Result;

use crate::{
    demo, process,
    setup::{self, Tier},
};

pub fn run(args: &[String]) -> Result<()> {
    setup::for_tier(Tier::Measure)?;
    let galatea = demo::build_release()?;
    let script = process::root().join("tests/soak/soak.py");
    process::run(Command::new(setup::python()).arg(script).arg("--server").arg(galatea).args(args))
}

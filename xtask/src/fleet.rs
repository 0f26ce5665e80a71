//! `cargo xtask fleet`: runs `tests/fleet/fleet.py`, plays of several servers behind the real Envoy. `GALATEA` names another
//! program than a release build.

use std::{env, path::PathBuf, process::Command};

use anyhow::Result;

use crate::{demo, process, setup};

pub fn run(args: &[String]) -> Result<()> {
    setup::run(&["envoy".to_owned()])?;
    let galatea =
        env::var_os("GALATEA").map_or_else(demo::build_release, |path| Ok(PathBuf::from(path)))?;
    let script = process::root().join("tests/fleet/fleet.py");
    process::run(Command::new(setup::python()).arg(script).args(args).env("GALATEA", galatea))
}

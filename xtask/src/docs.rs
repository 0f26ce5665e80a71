//! `cargo xtask docs`: makes a site in `target/docs`. It fails for a broken link, or a page that is in no section.

use std::process::Command;

use anyhow::{Result, bail};

use crate::{process, setup};

pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("unexpected argument '{unknown}'; usage: cargo xtask docs");
    }
    setup::clients()?;
    setup::site()?;
    let site = process::target_dir().join("docs");
    let sphinx = setup::dir().join("docs-venv/bin/sphinx-build");
    process::run(
        Command::new(sphinx)
            .args(["--quiet", "--fail-on-warning", "--keep-going", "--fresh-env", "--nitpicky"])
            .arg("--doctree-dir")
            .arg(process::target_dir().join("docs-state"))
            .args(["--conf-dir", "docs/site", "."])
            .arg(&site)
            .current_dir(process::root()),
    )?;
    println!("docs: {}", site.join("index.html").display());
    Ok(())
}

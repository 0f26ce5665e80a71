//! Generates the protobuf code with a crate outside the workspace, so that users never build protox.

use anyhow::Result;

use crate::process;

pub fn run(args: &[String]) -> Result<()> {
    let manifest = process::root().join("crates/shared/proto/codegen/Cargo.toml");
    process::run(
        process::cargo()
            .arg("run")
            .arg("--quiet")
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--")
            .args(args),
    )
}

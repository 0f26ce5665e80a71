//! The platform of a release, under the names that each kind of package has for it.

use anyhow::{Result, bail};

/// A kind of machine with Linux and the C library of GNU.
#[derive(Debug)]
pub struct Target {
    /// The name in Rust, wheels and archives.
    pub arch: &'static str,
    pub debian: &'static str,
}

const ALL: [Target; 2] =
    [Target { arch: "x86_64", debian: "amd64" }, Target { arch: "aarch64", debian: "arm64" }];

impl Target {
    pub fn named(name: &str) -> Result<&'static Self> {
        match ALL.iter().find(|target| target.arch == name) {
            Some(target) => Ok(target),
            None => bail!("no target '{name}'; there is x86_64 and aarch64"),
        }
    }

    pub fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.arch)
    }

    /// Returns true if a program for it runs on this machine.
    pub fn is_here(&self) -> bool {
        self.arch == std::env::consts::ARCH
    }
}

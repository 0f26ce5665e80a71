//! The program of a release: built so that it runs with an old glibc, and stripped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{elf, target::Target};
use crate::{process, setup};

/// The oldest glibc of a release, that of Debian 10, Ubuntu 20.04 and Red Hat's 8.
pub const GLIBC: (u32, u32) = (2, 28);
/// Largest size of the program: its users expect a small one.
const LARGEST_BYTES: usize = 30_000_000;

/// Builds the program with a linker that knows the symbols of that glibc, and checks its symbols afterwards.
pub fn build(target: &Target) -> Result<PathBuf> {
    check_standard_library(target)?;
    let tools = setup::dist_tools()?.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tools].into_iter().chain(std::env::split_paths(&path)))?;
    let triple = target.triple();
    let with_version = format!("{triple}.{}.{}", GLIBC.0, GLIBC.1);
    let folder = process::target_dir().join("dist-build");
    process::run(
        process::cargo()
            .args(["zigbuild", "--release", "--locked", "--package", "galatea", "--target"])
            .arg(with_version)
            .env("PATH", path)
            .env("CARGO_TARGET_DIR", &folder),
    )?;
    let program = folder.join(triple).join("release/galatea");
    let bytes = fs::read(&program)?;
    check_size(bytes.len())?;
    elf::check(&elf::needs(&bytes)?, GLIBC)?;
    Ok(program)
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes > LARGEST_BYTES {
        bail!(
            "the program measures {bytes} bytes, and a release may measure {LARGEST_BYTES}: see what grew with \
             `CARGO_PROFILE_RELEASE_STRIP=false cargo bloat --release --package galatea --crates`"
        );
    }
    Ok(())
}

/// Fails before minutes of building if the target's standard library is not installed.
fn check_standard_library(target: &Target) -> Result<()> {
    let triple = target.triple();
    let mut rustc = Command::new("rustc");
    let (ok, folder) = process::output(
        rustc.args(["--print", "target-libdir", "--target", &triple]).current_dir(process::root()),
    )?;
    if !ok || !Path::new(folder.trim()).is_dir() {
        bail!(
            "nothing is built for {triple}: Rust's standard library for it is not here; `rustup target add {triple}`"
        );
    }
    Ok(())
}

/// Returns a copy of a program without its debug information.
pub fn stripped(program: &Path, folder: &Path) -> Result<PathBuf> {
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    if !elf::has_debug_information(&bytes)? {
        return Ok(program.to_owned());
    }
    let stripped = folder.join("galatea.stripped");
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_grew_too_large_is_not_released() {
        check_size(LARGEST_BYTES).expect("as large as it may be");
        let refusal = check_size(LARGEST_BYTES + 1).expect_err("a byte too many").to_string();
        assert!(refusal.starts_with("the program measures 30000001 bytes"), "{refusal}");
    }
}

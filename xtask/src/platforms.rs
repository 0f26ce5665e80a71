//! `cargo xtask platforms [TARGET...]`: checks that the crates compile for other systems and processors.
//!
//! Nothing is linked, so a target needs only its standard library, which rustup fetches, and a compiler for libraries with C
//! code: Debian's cross compiler for Linux, or a stub where no compiler is available.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::process;

struct Platform {
    target: &'static str,
    /// Prefix of the C compiler's programs. `None`: a stub that makes empty files.
    compiler: Option<&'static str>,
    /// Crates that are not checked.
    without: &'static [&'static str],
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        target: "aarch64-unknown-linux-gnu",
        compiler: Some("aarch64-linux-gnu-"),
        without: &[],
    },
    // Models in their own processes need Linux, and so do the crates that use them.
    Platform {
        target: "aarch64-apple-darwin",
        compiler: None,
        without: &[
            "galatea",
            "galatea-backend-process",
            "galatea-backend-python",
            "galatea-fuzz",
            "galatea-serve",
            "galatea-worker",
            "xtask",
        ],
    },
];

/// A compiler and archiver that makes empty files: the argument of `-o`, and archives.
const STUB: &str = "#!/bin/sh
while [ $# -gt 0 ]; do
    case \"$1\" in
        -o) shift; : > \"$1\" ;;
        *.a) : > \"$1\" ;;
    esac
    shift
done
";

pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.iter().find(|arg| PLATFORMS.iter().all(|p| p.target != **arg)) {
        let known = PLATFORMS.map(|platform| platform.target).join(", ");
        bail!("no platform '{unknown}': there are {known}");
    }
    let asked = |platform: &&Platform| args.is_empty() || args.iter().any(|a| a == platform.target);
    PLATFORMS.iter().filter(asked).try_for_each(check)
}

fn check(platform: &Platform) -> Result<()> {
    let folder = process::target_dir().join("platforms");
    process::run(Command::new("rustup").args(["target", "add", platform.target]))?;
    let (compiler, archiver) = match platform.compiler {
        Some(start) => (tool(start, "gcc")?, tool(start, "ar")?),
        None => {
            let stub = stub(&folder)?;
            (stub.clone(), stub)
        }
    };
    let mut cargo = process::cargo();
    cargo
        .args(["check", "--workspace", "--target", platform.target])
        .arg("--target-dir")
        .arg(folder);
    cargo.args(platform.without.iter().flat_map(|name| ["--exclude", name]));
    let name = platform.target.replace('-', "_");
    cargo.env(format!("CC_{name}"), compiler).env(format!("AR_{name}"), archiver);
    process::run(&mut cargo)
}

fn tool(start: &str, name: &str) -> Result<PathBuf> {
    let name = format!("{start}{name}");
    process::which(&[&name]).with_context(|| {
        format!("{name} is not installed; Debian's package gcc-aarch64-linux-gnu has it")
    })
}

fn stub(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let stub = folder.join("no-compiler");
    fs::write(&stub, STUB)?;
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755))?;
    Ok(stub)
}

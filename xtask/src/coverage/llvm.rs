//! LLVM's tools that read the counts of programs. They must not be older than the compiler of those programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{process, setup};

/// The two tools.
pub struct Llvm {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Llvm {
    /// Finds the tools with the compiler's own version: in a component of the toolchain, or in Debian's packages, which are
    /// installed if possible.
    pub fn find() -> Result<Self> {
        let (_, about) = process::output(Command::new("rustc").arg("-vV"))?;
        let version = about.lines().find_map(|line| line.strip_prefix("LLVM version: "));
        let major = version.and_then(|version| version.split('.').next());
        let major = major.context("rustc -vV names no version of LLVM")?;
        if let Some(found) = Self::of_version(major)? {
            return Ok(found);
        }
        let package = format!("llvm-{major}");
        setup::debian(&[&package]).with_context(|| {
            format!("coverage needs {package}, or: rustup component add llvm-tools")
        })?;
        Self::of_version(major)?.with_context(|| format!("{package} has no llvm-profdata-{major}"))
    }

    fn of_version(major: &str) -> Result<Option<Self>> {
        let (_, sysroot) = process::output(Command::new("rustc").args(["--print", "sysroot"]))?;
        let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
        let components = fs::read_dir(libraries).into_iter().flatten().flatten();
        let mut folders = components.map(|folder| folder.path().join("bin"));
        let own = folders.find(|folder| folder.join("llvm-profdata").is_file());
        if let Some(folder) = own {
            let (profdata, cov) = (folder.join("llvm-profdata"), folder.join("llvm-cov"));
            return Ok(Some(Self { profdata, cov }));
        }
        let of_debian = |tool: &str| process::which(&[&format!("{tool}-{major}")]);
        let tools = of_debian("llvm-profdata").zip(of_debian("llvm-cov"));
        Ok(tools.map(|(profdata, cov)| Self { profdata, cov }))
    }

    /// Merges all files that programs wrote to a folder into one. A file that cannot be read is reported and skipped.
    pub fn merge(&self, folder: &Path, to: &Path) -> Result<()> {
        let entries = fs::read_dir(folder).with_context(|| {
            format!("nothing was counted: there is no folder {}", folder.display())
        })?;
        let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        if files.is_empty() {
            bail!("nothing was counted: {} is empty", folder.display());
        }
        let mut merge = Command::new(&self.profdata);
        merge.args(["merge", "--sparse", "--failure-mode=all", "--output"]).arg(to).args(files);
        let (is_good, output) = process::output(&mut merge)?;
        if !is_good {
            bail!("llvm-profdata cannot merge {}:\n{output}", folder.display());
        }
        Ok(())
    }

    /// Returns the counts of each file, in LLVM's form.
    pub fn export(&self, profile: &Path, objects: &[PathBuf]) -> Result<Value> {
        let (first, others) = objects.split_first().context("there is no program")?;
        let mut export = Command::new(&self.cov);
        export.args(["export", "--summary-only", "--instr-profile"]).arg(profile).arg(first);
        for object in others {
            export.arg("--object").arg(object);
        }
        let output = export.output().context("cannot start llvm-cov")?;
        if !output.status.success() {
            bail!("llvm-cov export: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("llvm-cov gave no JSON")
    }
}

//! A copy of the checkout in which faults are applied, with its own build folder.

use std::{
    fmt, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::patch::{NamedTest, Patch};
use crate::{crates::Crates, process};

/// The copy. Only one run uses it at a time.
pub struct Tree {
    root: PathBuf,
    pub build: PathBuf,
    pub crates: Crates,
}

/// Cargo's target that holds a test, so that no other one is built.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Tests in the source files of a package.
    Unit { package: String, is_program: bool },
    /// A file or folder of `tests`.
    Integration { package: String, name: String },
    /// The program, which tests in Python start.
    Program,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit { package, .. } => write!(f, "unit tests of {package}"),
            Self::Integration { package, name } => write!(f, "tests/{name} of {package}"),
            Self::Program => f.write_str("the program and tests in Python"),
        }
    }
}

/// A fault that is in the tree until this value is dropped.
pub struct Applied<'a> {
    tree: &'a Tree,
    patch: &'a Patch,
}

impl Drop for Applied<'_> {
    fn drop(&mut self) {
        if !self.tree.git_apply(&["--reverse"], self.patch) {
            eprintln!("mutants: {} is still in {}", self.patch.name, self.tree.root.display());
        }
    }
}

impl Tree {
    /// Updates the copy to the state of the checkout, with uncommitted changes. New files must be known to git.
    pub fn prepare() -> Result<Self> {
        let home = process::root().join("target/mutants");
        let root = home.join("tree");
        fs::create_dir_all(&home)?;
        let commit = match git(&process::root(), &["stash", "create"])? {
            text if text.is_empty() => git(&process::root(), &["rev-parse", "HEAD"])?,
            commit => commit,
        };
        if root.join(".git").exists() {
            git(&root, &["checkout", "--quiet", "--detach", "--force", &commit])?;
        } else {
            git(&process::root(), &["worktree", "prune"])?;
            let path = root.to_string_lossy();
            git(&process::root(), &["worktree", "add", "--quiet", "--detach", &path, &commit])?;
        }
        // The files of the setup are needed, and too large to fetch twice.
        let (peers, link) = (process::root().join("target/peers"), root.join("target/peers"));
        fs::create_dir_all(root.join("target"))?;
        if fs::symlink_metadata(&link).is_err() {
            symlink(fs::canonicalize(&peers).unwrap_or(peers), &link)?;
        }
        Ok(Self { root, build: home.join("build"), crates: Crates::read()? })
    }

    /// Returns a command that runs in the copy.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.root.join(folder)).env("CARGO_TARGET_DIR", &self.build);
        command
    }

    pub fn takes(&self, patch: &Patch) -> bool {
        self.git_apply(&["--check"], patch)
    }

    pub fn apply<'a>(&'a self, patch: &'a Patch) -> Result<Applied<'a>> {
        if !self.git_apply(&[], patch) {
            bail!("{} cannot be applied in {}", patch.name, self.root.display());
        }
        Ok(Applied { tree: self, patch })
    }

    fn git_apply(&self, options: &[&str], patch: &Patch) -> bool {
        let mut git = Command::new("git");
        git.current_dir(&self.root).arg("apply").args(options).arg(&patch.path);
        git.output().is_ok_and(|output| output.status.success())
    }

    /// Finds the target: searches the files of the package for the test's function.
    pub fn target_of(&self, test: &NamedTest) -> Result<Target> {
        let NamedTest::Rust { package, path } = test else { return Ok(Target::Program) };
        let folder = self.root.join(self.crates.folder(package)?);
        let function = path.rsplit("::").next().unwrap_or(path);
        let package = package.clone();
        if has_function(&folder.join("src"), function)? {
            let is_program = !folder.join("src/lib.rs").is_file();
            return Ok(Target::Unit { package, is_program });
        }
        for entry in fs::read_dir(folder.join("tests")).into_iter().flatten() {
            let path = entry?.path();
            if has_function(&path, function)? {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(Target::Integration { package, name });
            }
        }
        bail!("there is no function '{function}' in src or tests of {}", folder.display())
    }
}

fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let output = Command::new("git").current_dir(folder).args(args).output();
    let output = output.context("cannot start git")?;
    if !output.status.success() {
        bail!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns true if a file, or one in a folder, defines this function, directly or through a macro that gets the name.
fn has_function(path: &Path, name: &str) -> Result<bool> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            if has_function(&entry?.path(), name)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    Ok(is_rust && fs::read_to_string(path)?.contains(&format!("fn {name}(")))
}

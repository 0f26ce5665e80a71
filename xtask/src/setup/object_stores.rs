//! Emulators of object stores for the tests of remote repositories: `target/peers/object-stores`.

use std::{fs, process::Command};

use anyhow::Result;

use super::steps;
use crate::process;

const LIST: &str = "object-stores.txt";
const AZURE: &str = "object-stores";

/// Installs emulators of S3 and Google's store, with a client that fills buckets, as packages for Python in `python`.
pub fn s3_and_google() -> Result<()> {
    steps::step("object-stores", &steps::listing(LIST)?, || {
        let packages = steps::dir().join("object-stores/python");
        let _ = fs::remove_dir_all(&packages);
        fs::create_dir_all(&packages)?;
        let target = packages.to_string_lossy();
        let install = ["install", "--quiet", "--no-deps", "--target", &*target, "-r"];
        steps::pip(&steps::dir().join("venv"), &install, &steps::list_path(LIST))
    })
}

/// Installs Azure's emulator, an npm package, in `azure`.
pub fn azure() -> Result<()> {
    const FILES: [&str; 2] = ["package.json", "package-lock.json"];
    let lists = FILES.map(|file| steps::list_path(AZURE).join(file));
    let wanted: String = lists.iter().map(fs::read_to_string).collect::<std::io::Result<_>>()?;
    steps::step("object-stores-azure", &wanted, || {
        if process::which(&["npm"]).is_none() {
            steps::debian(&["npm"])?;
        }
        let home = steps::dir().join("object-stores/azure");
        for (list, file) in lists.iter().zip(FILES) {
            steps::place(list, &home.join(file))?;
        }
        let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
        process::run(Command::new("npm").args(quiet).current_dir(&home))
    })
}

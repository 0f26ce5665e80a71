//! `cargo xtask suite-report`: measures the cost of the suite and its failure rate, and prints one table.
//!
//! Each part is measured on request and stored in `target/suite-report`; the table shows everything stored there.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::process;

const USAGE: &str = "\
usage: cargo xtask suite-report [PART...]

  ci             .ci/run in a clean clone, with what earlier runs have installed on this machine
  ci-cold        the same with nothing downloaded: empty folders for cargo, pip, npm and the tests' data
  demo           `cargo xtask demo` in a clean clone: seconds and seconds of CPU
  runs=N         the tier commit, N times in a row, added to the runs that were measured before
  busy-runs=N    the same beside two busy loops

Without a part: the table of what was measured so far, with starts of servers, coverage and seeded faults.";

/// Number of loops that only compute, next to runs under load.
const BUSY_LOOPS: usize = 2;
/// Ticks per second in /proc, on every supported Linux.
const TICKS: f64 = 100.0;

pub fn run(args: &[String]) -> Result<()> {
    let report = Report { folder: process::target_dir().join("suite-report") };
    fs::create_dir_all(&report.folder)?;
    for part in args {
        match part.split_once('=') {
            None if part == "ci" => report.ci("ci", &[])?,
            None if part == "ci-cold" => report.ci_cold()?,
            None if part == "demo" => report.demo()?,
            Some(("runs", number)) => report.runs("runs", number.parse()?, 0)?,
            Some(("busy-runs", number)) => report.runs("busy-runs", number.parse()?, BUSY_LOOPS)?,
            _ => bail!("{USAGE}"),
        }
    }
    report.print()
}

/// The folder of all measurements.
struct Report {
    folder: PathBuf,
}

/// Seconds and CPU seconds of one command.
struct Cost {
    succeeded: bool,
    wall: f64,
    cpu: f64,
}

impl Report {
    fn ci(&self, name: &str, environment: &[(&str, PathBuf)]) -> Result<()> {
        let clone = self.clone_checkout()?;
        let starts = self.folder.join("starts.txt");
        let _ = fs::remove_file(&starts);
        let mut ci = Command::new("bash");
        ci.arg(".ci/run").current_dir(&clone).env("CI", "true").stdin(Stdio::null());
        ci.env("GALATEA_TEST_STARTS", &starts).env_remove("CARGO_TARGET_DIR");
        ci.envs(environment.iter().map(|(name, folder)| (name, folder)));
        let cost = measured(&mut ci)?;
        self.keep(
            name,
            &json!({"succeeded": cost.succeeded, "seconds": cost.wall, "cpu": cost.cpu}),
        )
    }

    fn ci_cold(&self) -> Result<()> {
        let empty = self.folder.join("empty");
        let _ = fs::remove_dir_all(&empty);
        let folders = ["cargo", "pip", "npm", "data", "galatea"];
        for folder in folders {
            fs::create_dir_all(empty.join(folder))?;
        }
        let variables = [
            ("CARGO_HOME", empty.join("cargo")),
            ("PIP_CACHE_DIR", empty.join("pip")),
            ("npm_config_cache", empty.join("npm")),
            ("GALATEA_TEST_DATA", empty.join("data")),
            ("GALATEA_HOME", empty.join("galatea")),
        ];
        self.ci("ci-cold", &variables)
    }

    fn demo(&self) -> Result<()> {
        let clone = self.clone_checkout()?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut demo = Command::new(cargo);
        demo.args(["xtask", "demo"]).current_dir(&clone).env_remove("CARGO_TARGET_DIR");
        let cost = measured(&mut demo)?;
        self.keep(
            "demo",
            &json!({"succeeded": cost.succeeded, "seconds": cost.wall, "cpu": cost.cpu}),
        )
    }

    /// Adds to earlier runs: together they may take more hours than one evening.
    fn runs(&self, name: &str, number: usize, loops: usize) -> Result<()> {
        let mut kept = self.kept(name).unwrap_or_else(|| json!([]));
        let runs = kept.as_array_mut().context("the file of runs holds no list; delete it")?;
        for turn in 1..=number {
            let starts = self.folder.join("starts.txt");
            let _ = fs::remove_file(&starts);
            let busy = BusyLoops::start(loops)?;
            let mut test = Command::new(std::env::current_exe()?);
            test.arg("test").current_dir(process::root()).env("GALATEA_TEST_STARTS", starts);
            let cost = measured(&mut test)?;
            drop(busy);
            runs.push(json!({
                "commit": commit()?, "failed": !cost.succeeded, "seconds": cost.wall.round()
            }));
            self.keep(name, &json!(runs))?;
            println!("suite-report: {name}, run {turn} of {number}: {}", runs_text(&json!(runs)));
        }
        Ok(())
    }

    /// Makes a clean clone of the committed state, with the folder `shared` next to it if there is one.
    fn clone_checkout(&self) -> Result<PathBuf> {
        let place = self.folder.join("clean");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(&place)?;
        let shared = process::root().join("../shared");
        if shared.is_dir() {
            symlink(shared.canonicalize()?, place.join("shared"))?;
        }
        let clone = place.join("checkout");
        process::run(
            Command::new("git").args(["clone", "--quiet"]).arg(process::root()).arg(&clone),
        )?;
        Ok(clone)
    }

    fn keep(&self, name: &str, value: &Value) -> Result<()> {
        let file = self.folder.join(format!("{name}.json"));
        fs::write(&file, format!("{value}\n")).with_context(|| file.display().to_string())
    }

    fn kept(&self, name: &str) -> Option<Value> {
        read_json(&self.folder.join(format!("{name}.json")))
    }

    fn print(&self) -> Result<()> {
        println!("| measured | figure | goal |\n|---|---|---|");
        for (name, title, goal) in [
            ("ci", ".ci/run, clean clone, packages installed before", "25 min"),
            ("ci-cold", ".ci/run, clean clone, nothing downloaded", "35 min"),
            ("demo", "cargo xtask demo, clean clone, registry warm", "5 min, 450 s of CPU"),
        ] {
            println!(
                "| {title} | {} | {goal} |",
                self.kept(name).map_or("not measured".into(), |v| cost_text(&v))
            );
        }
        for (name, title) in [
            ("runs", "tier commit in a row, quiet"),
            ("busy-runs", "tier commit in a row, two busy loops beside it"),
        ] {
            println!(
                "| {title} | {} | no failure |",
                self.kept(name).map_or("not measured".into(), |v| runs_text(&v))
            );
        }
        println!("| starts of our server in the tier commit | {} | at most 60 |", self.starts());
        let coverage = process::target_dir().join("coverage");
        println!(
            "| line coverage of the tier commit | {} | no crate one point below all tiers |",
            coverage_text(&coverage)
        );
        let mutants = process::target_dir().join("mutants/results.json");
        println!("| seeded faults caught | {} | all |", mutants_text(&mutants));
        Ok(())
    }

    fn starts(&self) -> String {
        let Ok(text) = fs::read_to_string(self.folder.join("starts.txt")) else {
            return "not measured".into();
        };
        text.lines().filter(|line| line.starts_with("galatea\t")).count().to_string()
    }
}

/// Processes that only compute, until they are dropped.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start(number: usize) -> Result<Self> {
        let mut loops = Self(Vec::new());
        for _ in 0..number {
            loops.0.push(Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "what took how long is reported")]
fn measured(command: &mut Command) -> Result<Cost> {
    let (started, before) = (Instant::now(), children_cpu()?);
    let status = process::status(command)?;
    Ok(Cost {
        succeeded: status.success(),
        wall: started.elapsed().as_secs_f64(),
        cpu: children_cpu()? - before,
    })
}

/// Returns the CPU seconds, user and system, of all children that have ended.
fn children_cpu() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat names no program")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(13).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

fn read_json(file: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

fn cost_text(value: &Value) -> String {
    let (seconds, cpu) =
        (value["seconds"].as_f64().unwrap_or(0.0), value["cpu"].as_f64().unwrap_or(0.0));
    let failed = if value["succeeded"] == true { "" } else { ", FAILED" };
    format!("{:.1} min, {cpu:.0} s of CPU{failed}", seconds / 60.0)
}

fn runs_text(runs: &Value) -> String {
    let runs = runs.as_array().map_or(&[][..], Vec::as_slice);
    let failed: Vec<_> = runs.iter().filter(|run| run["failed"] == true).collect();
    let seconds: Vec<_> = runs.iter().map(|run| run["seconds"].to_string()).collect();
    let at: Vec<_> = failed.iter().filter_map(|run| run["commit"].as_str()).collect();
    let at = if at.is_empty() { String::new() } else { format!(" (at {})", at.join(", ")) };
    format!("{} of {} failed{at}; seconds {}", failed.len(), runs.len(), seconds.join(", "))
}

/// Returns the short name of the checked-out commit.
fn commit() -> Result<String> {
    let (_, text) = process::output(Command::new("git").args(["describe", "--always", "--dirty"]))?;
    Ok(text.trim().into())
}

/// Returns the coverage of the tier commit, and the crates for which all tiers together add more than a point.
fn coverage_text(folder: &Path) -> String {
    let percents = |name| {
        let Value::Object(crates) = read_json(&folder.join(name))?["crates"].take() else {
            return None;
        };
        let percents =
            crates.iter().filter_map(|(name, c)| Some((name.clone(), c["percent"].as_f64()?)));
        Some(percents.collect::<BTreeMap<_, _>>())
    };
    let Some(commit) = percents("commit.json") else {
        return "not measured".into();
    };
    let whole = commit.get("all crates").copied().unwrap_or(0.0);
    let Some(sum) = percents("sum.json") else {
        return format!("{whole:.1} %, other tiers not measured");
    };
    let lost = |(name, all): (&String, &f64)| {
        let here = commit.get(name).copied().unwrap_or(0.0);
        (all - here > 1.0).then(|| format!("{name} {here:.1} of {all:.1}"))
    };
    let lost: Vec<_> = sum.iter().filter_map(lost).collect();
    let lost = if lost.is_empty() { "none below".to_owned() } else { lost.join(", ") };
    format!("{whole:.1} %, {lost}")
}

fn mutants_text(file: &Path) -> String {
    let Some(Value::Object(results)) = read_json(file) else {
        return "not measured".into();
    };
    let caught = results.values().filter(|result| *result == "caught").count();
    format!("{caught} of {}", results.len())
}

//! Tasks of the project, run as `cargo xtask <task>`.
//!
//! Only orchestration: programs that talk to a running server are in Python under `tests/` and `examples/`. They use the stock
//! clients, so that the two ends of the wire are from different authors.

mod attack;
mod bench;
mod codegen;
mod coverage;
mod crates;
mod demo;
mod dist;
mod docs;
mod fleet;
mod fuzz;
mod hook;
mod mutants;
mod platforms;
mod process;
mod setup;
mod soak;
mod suite;
mod texts;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask <task> [options]

  demo [sentences] [--keep]
                     build, fetch the example models, serve them and ask them something;
                     `sentences`: text to vectors, by Python models around an ONNX model
  test [--peers] [--measure] [--all] [--only NAME] [filter...]
                     the tests that every change passes (the tier commit); --peers: those that ask the real Triton,
                     browsers and other languages; --measure: those that look at times; --only: one test, by its name
  suite-report [PART...]
                     what the suite costs and how often it fails, as one table; `suite-report help` lists the parts
  bench [options]    one table: cost and latency of this server, side by side with its peers
  fuzz [target...] [--seconds N]
                     the parsers of foreign bytes under libFuzzer and the address sanitizer, a minute each
  attack [options]   one table: what a stranger can send, and what it does to memory, descriptors and other clients
  soak [--minutes N] [--seed N]
                     clients of all kinds, reloads and nonsense on one server, 15 minutes: nothing wrong, nothing lost,
                     memory flat
  fleet [PLAY] [--seed N] [--minutes M]
                     several servers behind the real Envoy: hosts that fail, rolling changes, shares by load, random faults
  coverage [--tier commit|peers|measure] [--add] [--against FILE]
                     the lines that a tier of the tests runs, by crate; fails where a crate lost more than a point of FILE
  mutants [--check] [name...]
                     the faults of tests/mutants, one after the other: does the test that each names notice it?
  platforms [TARGET...]
                     check that the crates compile for other systems: ARM Linux whole, macOS without isolated models
  dist [--target x86_64|aarch64] [--out DIR] [--program PATH] [--compression 0..9]
                     the files of a release: program for glibc 2.28, archive, wheel, Debian package, SBOM, checksums
  docs               the documentation as a site in target/docs; a link that leads nowhere fails
  setup [NAME...]    fetch what the tests need (clients, models, peers), or the parts named, into target/peers
  tidy [--record]
                     check what reviewers would: layers, circles of files, `unsafe`, names, comments, pages and more;
                     --record: lower the counts that are still allowed (tests/*-allowed.txt) to what there is
  texts [--draw N] [--seed N]
                     print every text that people read (errors, logs, help, console), or some drawn by chance
  hook               have git refuse commits whose subject is longer than 72 characters
  codegen [--check]  regenerate the protobuf code (or say whether it is up to date)
  deny               licences, bans and sources of all dependencies
  advisories         known vulnerabilities of all dependencies; needs network to github.com";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let task = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    match task.as_str() {
        "demo" => demo::run(&rest),
        "test" => suite::run(&rest),
        "suite-report" => suite::report::run(&rest),
        "attack" => attack::run(&rest),
        "soak" => soak::run(&rest),
        "bench" => bench::run(&rest),
        "fleet" => fleet::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "hook" => hook::run(&rest),
        "coverage" => coverage::run(&rest),
        "mutants" => mutants::run(&rest),
        "platforms" => platforms::run(&rest),
        "dist" => dist::run(&rest),
        "docs" => docs::run(&rest),
        "setup" => setup::run(&rest),
        "texts" => texts::run(&rest),
        "tidy" => tidy::run(&rest),
        "codegen" => codegen::run(&rest),
        "deny" => suite::deny(),
        "advisories" => suite::advisories(),
        "" | "help" | "-h" | "--help" => {
            println!("{HELP}");
            Ok(())
        }
        other => bail!("no task '{other}'\n\n{HELP}"),
    }
}

//! `cargo xtask dist`: makes all files of a release with one command, the same bytes for the same commit.

mod archive;
mod contents;
mod deb;
mod elf;
mod program;
mod sbom;
mod target;
mod wheel;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use self::{
    archive::{Form, tar_gz},
    contents::{Contents, Entry},
    elf::Needs,
    target::Target,
};
use crate::{demo, process};

const USAGE: &str = "\
usage: cargo xtask dist [--target x86_64|aarch64] [--out DIR] [--program PATH] [--compression 0..9]

Builds the program for glibc 2.28 and makes an archive, a wheel, a Debian package, a list of what it is made of
(CycloneDX) and SHA256SUMS of them all in DIR (target/dist). With --program that program is packed as it is, and the
packages say what it needs. SOURCE_DATE_EPOCH is the time of the files; without it, that of the last commit.";

struct Options {
    target: &'static Target,
    out: PathBuf,
    program: Option<PathBuf>,
    compression: u32,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            target: Target::named(std::env::consts::ARCH)?,
            out: process::target_dir().join("dist"),
            program: None,
            compression: 9,
        };
        let mut args = args.iter();
        while let Some(name) = args.next() {
            let value = args.next().with_context(|| format!("no value for '{name}'\n\n{USAGE}"))?;
            match name.as_str() {
                "--target" => options.target = Target::named(value)?,
                "--out" => options.out = value.into(),
                "--program" => options.program = Some(value.into()),
                "--compression" => match value.parse() {
                    Ok(level @ 0..=9) => options.compression = level,
                    _ => bail!("--compression is a number from 0 to 9, not '{value}'"),
                },
                _ => bail!("no option '{name}'\n\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

pub fn run(args: &[String]) -> Result<()> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let Options { target, out, program, compression } = Options::parse(args)?;
    let program = program.map_or_else(|| program::build(target), Ok)?;
    fs::create_dir_all(&out)?;
    let packed = program::stripped(&program, &out)?;
    let speaking = if target.is_here() { packed.clone() } else { demo::build()? };
    let contents = Contents::gather(&packed, &speaking)?;
    if packed != program {
        fs::remove_file(&packed)?;
    }
    let needs = elf::needs(&contents.program)?;
    let form = Form { time: time()?, compression };
    let files = make(&contents, &needs, target, form)?;
    let (major, minor) = needs.glibc;
    println!(
        "dist: {} needs glibc {major}.{minor} and {}",
        target.triple(),
        needs.libraries.join(" ")
    );
    write(&out, files)
}

/// Returns (name, bytes) of every file except the checksums. Compression is slow, so all are made in parallel.
fn make(
    contents: &Contents,
    needs: &Needs,
    target: &Target,
    form: Form,
) -> Result<Vec<(String, Vec<u8>)>> {
    let version = env!("CARGO_PKG_VERSION");
    thread::scope(|scope| {
        let makers = [
            scope.spawn(|| archive(contents, version, target, form)),
            scope.spawn(|| wheel::make(contents, needs, version, target, form)),
            scope.spawn(|| deb::make(contents, needs, version, target, form)),
            scope.spawn(|| {
                let name = format!("galatea-{version}-{}-linux-gnu.cdx.json", target.arch);
                Ok((name, sbom::make(version, target, form.time)?))
            }),
        ];
        let made = makers.map(|maker| {
            maker.join().unwrap_or_else(|_| bail!("making a file of the release panicked"))
        });
        made.into_iter().collect()
    })
}

/// Returns an archive with the folders `bin` and `share`, to unpack anywhere.
fn archive(
    contents: &Contents,
    version: &str,
    target: &Target,
    form: Form,
) -> Result<(String, Vec<u8>)> {
    let name = format!("galatea-{version}-{}-linux-gnu", target.arch);
    let mut entries = contents.programs("bin");
    entries.extend(contents.completions("share"));
    entries.push(Entry::file("share/man/man1/galatea.1", 0o644, contents.manual.clone()));
    entries.push(Entry::file("LICENSE", 0o644, contents.licence.clone()));
    Ok((format!("{name}.tar.gz"), tar_gz(&format!("{name}/"), &entries, form)?))
}

/// Writes the files and the list of their checksums, in the form that `sha256sum --check` reads.
fn write(out: &Path, mut files: Vec<(String, Vec<u8>)>) -> Result<()> {
    files.sort();
    let mut sums = String::new();
    for (name, bytes) in &files {
        let digest: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{digest}  {name}\n"));
        fs::write(out.join(name), bytes)?;
        println!("dist: {:>9.1} KiB  {}", bytes.len() as f64 / 1024.0, out.join(name).display());
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}

fn time() -> Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time.parse().with_context(|| format!("SOURCE_DATE_EPOCH is '{time}', not seconds"));
    }
    let mut git = Command::new("git");
    let (ok, text) =
        process::output(git.args(["log", "-1", "--format=%ct"]).current_dir(process::root()))?;
    if !ok {
        bail!("no commit tells the time of the files: set SOURCE_DATE_EPOCH");
    }
    Ok(text.trim().parse()?)
}

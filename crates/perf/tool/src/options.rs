//! The command line: perf_analyzer's, and a few options of our own.
//!
//! Words are read as GNU `getopt_long` reads them ([`getopt`]); a table ([`table`]) says what each option takes,
//! what it does to [`given::Given`] and how the help describes it; [`verify`] checks what options say together;
//! [`build`] makes the [`Settings`]. The texts of errors are those of perf_analyzer 2.50 where it has one. Where
//! it takes a number's beginning for the number (`3x`), wraps around (`-1`) or aborts, the option is refused.

mod build;
mod getopt;
mod given;
mod help;
mod intervals;
mod occurrence;
mod range;
mod setting;
mod spec;
mod table;
#[cfg(test)]
mod tests;
mod verify;

use galatea_perf_types::{
    console::Console,
    failure::{Failure, Result},
    settings::Settings,
};

use self::{
    getopt::{Item, Words},
    given::Given,
    occurrence::Occurrence,
    spec::Action,
};

/// The perf_analyzer whose command lines, texts and files these are.
pub const PEER_VERSION: &str = "2.50.0";

/// What a command line asks for. Texts end with a newline.
#[derive(Debug)]
pub enum Parsed {
    Help(String),
    Version(String),
    Run(Box<Settings>),
}

/// Reads the words after the program's name, as users would type that name (`perf_analyzer`, `galatea perf`).
///
/// Warnings go to the console's error side. The message of a failure is whole: the error, and on a line of its
/// own where to find the help.
pub fn parse(
    program: &str,
    arguments: impl Iterator<Item = String>,
    console: &mut dyn Console,
) -> Result<Parsed> {
    let refuse = |text: String| {
        Failure::option(format!("{text}\nTry '{program} --help' for what the options are."))
    };
    let error = |text: String| refuse(format!("Error: {text}"));
    let mut given = Given::default();
    let mut words = Words::new(arguments);
    while let Some(item) = words.next() {
        match item.map_err(|text| refuse(format!("{program}: {text}")))? {
            Item::Word(word) => given.warn(format!("ignoring '{word}', which is not an option")),
            Item::Option(occurrence) => match apply(&occurrence, &mut given).map_err(error)? {
                Some(Asked::Help) => return Ok(Parsed::Help(help::help(program))),
                Some(Asked::Version) => return Ok(Parsed::Version(version())),
                None => {}
            },
        }
        tell(&mut given, console);
    }
    let verified = verify::verify(&mut given);
    tell(&mut given, console);
    verified.map_err(error)?;
    build::settings(given).map(|settings| Parsed::Run(Box::new(settings))).map_err(error)
}

/// A text asked for instead of a run.
enum Asked {
    Help,
    Version,
}

fn apply(occurrence: &Occurrence, given: &mut Given) -> Result<Option<Asked>, String> {
    match occurrence.spec.action {
        Action::Set(set) => set(given, occurrence).map(|()| None),
        Action::Ignore => Ok(None),
        Action::Refuse(why) => Err(format!("{} is not supported: {why}", occurrence.spelled())),
        Action::Help => Ok(Some(Asked::Help)),
        Action::Version => Ok(Some(Asked::Version)),
    }
}

fn tell(given: &mut Given, console: &mut dyn Console) {
    for warning in given.warnings.drain(..) {
        console.err(&format!("WARNING: {warning}\n"));
    }
}

/// The peer's version stands where its own program has it, for tools that read it.
fn version() -> String {
    format!("Perf Analyzer Version {PEER_VERSION} (galatea {})\n", env!("CARGO_PKG_VERSION"))
}

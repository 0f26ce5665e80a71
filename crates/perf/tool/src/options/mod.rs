//! The command line: perf_analyzer's, and a few options that it does not have.
//!
//! A table ([`table`]) has each option's values, its effect on [`given_options::GivenOptions`] and its help;
//! [`verify`] checks options against each other; [`build`] makes the [`Settings`]. The texts of errors are those
//! of perf_analyzer 2.50 where it has one. Where it takes a number's beginning for the number (`3x`), wraps around
//! (`-1`) or aborts, the option is refused.

mod advice;
mod build;
mod error;
mod given_options;
mod intervals;
mod range;
mod readers;
mod setting;
mod table;
#[cfg(test)]
mod tests;
mod verify;

use galatea_command_line::{
    Asked, Group, OptionOutline, OptionSet, help, outline as outline_of, parse as parse_into,
};
use galatea_perf_types::{
    console::Console,
    failure::{Failure, Result},
    settings::Settings,
};

use self::{error::OptionError, given_options::GivenOptions};

/// The version of perf_analyzer whose command lines, texts and files are used.
pub const PERF_ANALYZER_VERSION: &str = "2.50.0";

/// The request of a command line. Texts end with a newline.
#[derive(Debug)]
pub enum ParsedOptions {
    /// The help text.
    Help(String),
    /// The versions of perf_analyzer and of this program.
    Version(String),
    /// A measurement with these settings.
    Run(Box<Settings>),
}

const HELP_WIDTH: usize = 100;

/// Reads the words after the program's name. `program` is that name as users type it (`perf_analyzer`, `galatea perf`).
///
/// Warnings go to the console's error side. The message of a failure is complete: the error, and a line that points to the
/// help.
pub fn parse(
    program: &str,
    arguments: impl Iterator<Item = String>,
    console: &mut dyn Console,
) -> Result<ParsedOptions> {
    let mut given = GivenOptions::default();
    let words: Vec<String> = arguments.collect();
    let asked = parse_into(words.iter().cloned(), &mut given);
    report_warnings(&mut given, console);
    let refuse = |error, stray| refuse(program, error, &words, stray);
    match asked.map_err(|error| refuse(error, None))? {
        Some(Asked::Help) => return Ok(ParsedOptions::Help(help_text(program))),
        Some(Asked::Version) => return Ok(ParsedOptions::Version(version())),
        None => {}
    }
    let verified = verify::verify(&mut given);
    report_warnings(&mut given, console);
    let stray = given.stray.clone().filter(|_| given.settings.model_name.is_empty());
    let settings = verified.and_then(|()| build::settings(given));
    settings
        .map(|settings| ParsedOptions::Run(Box::new(settings)))
        .map_err(|error| refuse(error, stray))
}

fn refuse(program: &str, error: OptionError, words: &[String], stray: Option<String>) -> Failure {
    let error = error::in_own_words(error);
    let who = if error.is_syntax() { program } else { "Error" };
    let hint = format!("Try '{program} --help' for the options.");
    let meant = stray.map(|word| advice::for_stray_word(&word));
    let meant = meant.or_else(|| advice::for_error(&error, words));
    let meant = meant.map(|meant| format!("\n{meant}")).unwrap_or_default();
    Failure::option(format!("{who}: {error}\n{hint}{meant}"))
}

fn report_warnings(given: &mut GivenOptions, console: &mut dyn Console) {
    for warning in given.warnings.drain(..) {
        console.err(&format!("WARNING: {warning}\n"));
    }
}

fn help_text(program: &str) -> String {
    let heading = format!(
        "Usage: {program} -m <model> [options]\n\n\
         Puts load on a model behind a KServe v2 server and reports throughput and latency. Takes the\n\
         command lines of perf_analyzer. Long names may be cut short as long as they are unique.\n"
    );
    help::<GivenOptions>(&heading, HELP_WIDTH)
}

/// Returns the options of the table, for texts about all commands.
pub fn outline() -> Vec<OptionOutline> {
    outline_of::<GivenOptions>()
}

/// Returns the version. perf_analyzer's is at the place where it prints it, for tools that parse it.
fn version() -> String {
    format!(
        "Perf Analyzer Version {PERF_ANALYZER_VERSION} (galatea {})\n",
        env!("CARGO_PKG_VERSION")
    )
}

impl OptionSet for GivenOptions {
    type Error = OptionError;

    const TAKES_UNDERSCORES: bool = true;

    fn groups() -> &'static [Group<Self>] {
        table::GROUPS
    }

    fn word(&mut self, word: String) -> Result<(), OptionError> {
        self.stray.get_or_insert_with(|| word.clone());
        self.warn(format!("ignoring '{word}', which is not an option"));
        Ok(())
    }
}

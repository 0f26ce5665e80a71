//! `galatea deploy`: prints the configuration of a proxy in front of servers.

mod command_line;
mod envoy;
mod host;

use std::process::ExitCode;

use galatea_command_line::help;

pub use self::command_line::EnvoyFlags;
use crate::{
    flags::FlagError,
    terminal::{HELP_WIDTH, print, refuse},
};

const USAGE: &str = "\
Usage: galatea deploy envoy --hosts <host>,<host>... [options]

Prints a configuration of Envoy 1.40 that spreads HTTP and gRPC over servers by the load that they report.
`galatea deploy envoy --help` lists the options.
";

/// The words after `galatea deploy`, for completions.
pub const WORDS: &[&str] = &["envoy", "--help"];

pub fn run(words: Vec<String>) -> ExitCode {
    match configuration(words) {
        Ok(text) => print(&text),
        Err(error) => refuse(
            error,
            "galatea deploy envoy --hosts <host>,<host>...; `galatea deploy envoy --help` says more",
        ),
    }
}

fn configuration(words: Vec<String>) -> Result<String, FlagError> {
    let mut words = words.into_iter();
    match words.next().as_deref() {
        Some("-h" | "--help") => Ok(USAGE.to_owned()),
        Some("envoy") => Ok(match command_line::read(words.collect())? {
            Some(flags) => envoy::configuration(&flags),
            None => help::<EnvoyFlags>(command_line::USAGE, HELP_WIDTH),
        }),
        Some(other) => {
            Err(FlagError::rule(format!("'deploy' has no '{other}': 'envoy' is expected")))
        }
        None => Err(FlagError::rule("a proxy is missing: 'envoy' is expected".to_owned())),
    }
}

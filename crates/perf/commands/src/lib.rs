//! Commands by which people ask a running server: `galatea models` lists what it has, `galatea infer` sends it one
//! request, `galatea top` watches what it does.
//!
//! [`models`], [`infer`] and [`top()`] are the whole commands: they read their command line, ask the server within a time and
//! an amount of data that are bounded, and print.
//!
//! **Invariants.** The server is not trusted: no control character of it reaches the terminal, and a response that is
//! too long or too late is an error.

#![warn(missing_docs)]

mod audio;
mod elements;
mod error;
mod infer;
mod input;
mod models;
mod npy;
mod options;
mod output;
mod picture;
mod printing;
mod session;
mod shape;
mod top;
mod value;

use std::io::{self, Write};

use galatea_command_line::{OptionOutline, OptionSet, help, outline};

pub use self::error::Exit;
pub use self::top::TerminalSettings;
#[doc(hidden)]
pub use self::top::read_metrics_page;
use self::{
    error::CommandError,
    options::{InferOptions, ModelsOptions},
    top::TopOptions,
};

const HELP_WIDTH: usize = 80;

/// `galatea models`, with the words behind that, on a terminal that is as `look` says.
pub fn models(words: impl Iterator<Item = String>, look: TerminalSettings) -> Exit {
    command("models", options::MODELS, words, |options| models::run(options, look.width))
}

/// `galatea infer`, with the words behind that.
pub fn infer(words: impl Iterator<Item = String>) -> Exit {
    command("infer", options::INFER, words, infer::run)
}

/// `galatea top`, with the words behind that, on a terminal that is as `look` says.
pub fn top(words: impl Iterator<Item = String>, look: TerminalSettings) -> Exit {
    command("top", top::USAGE, words, |options| top::run(options, look).map(|()| String::new()))
}

/// The models of the server at the default address, for the completion of command lines; none where it does not answer at
/// once. Only names that mean nothing else to a shell: shells expand what they are offered. `words`: options of
/// `galatea models`.
pub fn model_names(words: impl Iterator<Item = String>) -> Vec<String> {
    match galatea_command_line::read(words) {
        Ok(Some(options)) => models::names(options).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The options of `galatea top`, for texts about all commands.
pub fn top_outline() -> Vec<OptionOutline> {
    outline::<TopOptions>()
}

/// The options of `galatea models`, for texts about all commands.
pub fn models_outline() -> Vec<OptionOutline> {
    outline::<ModelsOptions>()
}

/// The options of `galatea infer`, for texts about all commands.
pub fn infer_outline() -> Vec<OptionOutline> {
    outline::<InferOptions>()
}

fn command<O: OptionSet<Error = CommandError> + Default>(
    name: &str,
    usage: &str,
    words: impl Iterator<Item = String>,
    run: impl FnOnce(&O) -> Result<String, CommandError>,
) -> Exit {
    let made = galatea_command_line::read(words).and_then(|options| match options {
        Some(options) => run(&options),
        None => Ok(help::<O>(usage, HELP_WIDTH)),
    });
    match made {
        Ok(text) => {
            // A reader that went away (`| head`) is no error.
            let _ = io::stdout().write_all(text.as_bytes());
            Exit::Success
        }
        Err(error) => {
            eprintln!("error: {}", printing::lines(&error.to_string()));
            let exit = error.exit();
            if exit == Exit::CommandLine {
                eprintln!("`galatea {name} --help` says more");
            }
            exit
        }
    }
}

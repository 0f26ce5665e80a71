//! Commands that ask a running server: `galatea models` lists its models, `galatea infer` sends it one request, `galatea top`
//! shows its activity.
//!
//! [`models`], [`infer`] and [`top()`] are the whole commands: they read their command line, ask the server within bounds of
//! time and size, and print.
//!
//! **Invariants.** The server is not trusted: none of its control characters reaches the terminal, and a response that is too
//! long or too late is an error.

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
mod session;
mod shape;
mod top;
mod value;

use std::io::{self, Write};

use galatea_command_line::{OptionOutline, OptionSet, help, outline};
use galatea_terminal_text as printing;

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

/// Runs `galatea models` with the words after it. `look` describes the terminal.
pub fn models(words: impl Iterator<Item = String>, look: TerminalSettings) -> Exit {
    command("models", options::MODELS, words, |options| models::run(options, look.width))
}

/// Runs `galatea infer` with the words after it.
pub fn infer(words: impl Iterator<Item = String>) -> Exit {
    command("infer", options::INFER, words, infer::run)
}

/// Runs `galatea top` with the words after it. `look` describes the terminal.
pub fn top(words: impl Iterator<Item = String>, look: TerminalSettings) -> Exit {
    command("top", top::USAGE, words, |options| top::run(options, look).map(|()| String::new()))
}

/// Returns the models of the server at the default address, to complete command lines; none if it does not answer at once.
/// Names with characters that a shell expands are left out. `words`: options of `galatea models`.
pub fn model_names(words: impl Iterator<Item = String>) -> Vec<String> {
    match galatea_command_line::read(words) {
        Ok(Some(options)) => models::names(options).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Returns the options of `galatea top`, for texts about all commands.
pub fn top_outline() -> Vec<OptionOutline> {
    outline::<TopOptions>()
}

/// Returns the options of `galatea models`, for texts about all commands.
pub fn models_outline() -> Vec<OptionOutline> {
    outline::<ModelsOptions>()
}

/// Returns the options of `galatea infer`, for texts about all commands.
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
            // A reader that is gone (`| head`) is not an error.
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

//! The options of `serve`: one table that yields the parser and the help.
//!
//! Names, defaults and spellings are those of `tritonserver`, whose whole command line is known here. A missing function is
//! accepted with a warning if only speed or observation depends on it. It is refused by name if clients would be less safe
//! or get different answers.

mod access;
mod error;
mod serve_flags;
mod setting;
mod table;
mod trace;

use galatea_command_line::{Notice, OptionSet, help as help_of, read, rows};

pub use self::{
    error::FlagError,
    serve_flags::{CacheFlags, EndpointFlags, ServeFlags, TlsFlags},
    setting::{backend_setting, cache_setting, memory_size, missing_gpus},
};
use crate::terminal::HELP_WIDTH;

impl OptionSet for ServeFlags {
    type Error = FlagError;

    fn groups() -> &'static [galatea_command_line::Group<Self>] {
        table::GROUPS
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        self.words.push(word);
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// The meaning of words that are not options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// None are allowed, as in Triton.
    Refused,
    /// They are paths to serve. If options name the repositories, as Triton's users do, a further word is a mistake, as in
    /// Triton.
    Paths,
}

/// Reads the words after the command's name; `None` if they ask for the help.
pub fn parse(
    words: impl IntoIterator<Item = String>,
    others: Words,
) -> Result<Option<ServeFlags>, FlagError> {
    let words: Vec<String> = words.into_iter().collect();
    let Some(mut flags) = read::<ServeFlags>(words.clone())? else { return Ok(None) };
    if flags.serve.is_hardened {
        // Only defaults: the user's options follow them, and have priority.
        let defaults = HARDENED.iter().map(|&word| word.to_owned());
        let Some(hardened) = read(defaults.chain(words))? else { return Ok(None) };
        flags = hardened;
    }
    for word in std::mem::take(&mut flags.words) {
        if others == Words::Refused || word.starts_with('-') || names_an_option(&word) {
            return Err(FlagError::Unexpected(word));
        }
        if !flags.serve.repositories.is_empty() {
            return Err(FlagError::PathBesideRepository(word));
        }
        flags.serve.paths.push(word.into());
    }
    finish(&mut flags);
    Ok(Some(flags))
}

/// The options that `--hardened` sets. Without a policy, it also forbids everybody to change the server.
const HARDENED: [&str; 7] = [
    "--http-address=127.0.0.1",
    "--grpc-address=127.0.0.1",
    "--console=false",
    "--python-isolation=standard",
    "--client-max-concurrent-requests=256",
    "--client-max-request-bytes=1G",
    "--connection-max-concurrent-requests=128",
];

/// Returns true for `model-repository=/models`, an option without its dashes.
fn names_an_option(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    rows::<ServeFlags>().any(|row| row.names.long == name)
}

/// Checks and applies options that depend on each other, in any order.
fn finish(flags: &mut ServeFlags) {
    trace::finish(flags);
    if !flags.is_auto_complete_disabled {
        return;
    }
    let is_strict = |notice: &Notice| matches!(notice, Notice::Warning(text) if text.contains("'--strict-model-config'"));
    if flags.serve.engine.auto_completes_config && flags.notices.iter().any(is_strict) {
        flags.notices.push(Notice::Warning(
            "Overriding deprecated '--strict-model-config' from False to True in favor of \
             '--disable-auto-complete-config'!"
                .to_owned(),
        ));
    }
    flags.serve.engine.auto_completes_config = false;
}

/// Returns the help text of a command that was started as `program`.
pub fn help(program: &str, others: Words) -> String {
    let heading = match others {
        Words::Refused => format!("Usage: {program} [options]\n"),
        Words::Paths => format!("Usage: {program} [PATH...] [options]\n\n{PATHS_HELP}"),
    };
    help_of::<ServeFlags>(&heading, HELP_WIDTH)
}

const PATHS_HELP: &str = "\
PATH is a model repository (a folder with one folder per model), the folder of
one model, or a model file: .onnx, .pt, .pt2, .savedmodel, .graphdef, .pb, .xml,
.py. A config.pbtxt beside such a file is its configuration.
Example: galatea serve iris.onnx
";

#[cfg(test)]
mod tests;

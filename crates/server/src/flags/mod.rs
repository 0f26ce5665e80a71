//! The options of `serve`: one table that yields the parser and the help.
//!
//! Names, defaults and spellings are those of `tritonserver`; its whole command line is known here. What we
//! cannot do yet is accepted with a warning where only speed or what is observed depends on it, and refused by name
//! where clients would be less safe or answers different.

mod access;
mod error;
mod serve_flags;
mod setting;
mod table;
mod trace;

use galatea_command_line::{
    Asked, Notice, OptionOutline, OptionSet, help as help_of, outline as outline_of,
    parse as parse_into,
};

pub use self::{
    error::FlagError,
    serve_flags::{EndpointFlags, RuntimeOptions, ServeFlags},
};

const HELP_WIDTH: usize = 80;

impl OptionSet for ServeFlags {
    type Error = FlagError;

    fn groups() -> &'static [galatea_command_line::Group<Self>] {
        table::GROUPS
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        self.unexpected.get_or_insert(word);
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

/// Reads the words behind the command's name; `None` when they ask for the help.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<ServeFlags>, FlagError> {
    let mut flags = ServeFlags::default();
    match parse_into(words, &mut flags)? {
        Some(Asked::Help | Asked::Version) => Ok(None),
        None => match flags.unexpected.take() {
            Some(word) => Err(FlagError::Unexpected(word)),
            None => {
                finish(&mut flags);
                Ok(Some(flags))
            }
        },
    }
}

/// What depends on several options that may come in any order.
fn finish(flags: &mut ServeFlags) {
    trace::finish(flags);
    if !flags.is_auto_complete_disabled {
        return;
    }
    let is_strict = |notice: &Notice| matches!(notice, Notice::Warning(text) if text.contains("'--strict-model-config'"));
    if flags.engine.auto_completes_config && flags.notices.iter().any(is_strict) {
        flags.notices.push(Notice::Warning(
            "Overriding deprecated '--strict-model-config' from False to True in favor of \
             '--disable-auto-complete-config'!"
                .to_owned(),
        ));
    }
    flags.engine.auto_completes_config = false;
}

/// The help text, for a command that was started as `program`.
pub fn help(program: &str) -> String {
    help_of::<ServeFlags>(&format!("Usage: {program} [options]\n"), HELP_WIDTH)
}

/// What the table says, for texts about all commands.
pub fn outline() -> Vec<OptionOutline> {
    outline_of::<ServeFlags>()
}

#[cfg(test)]
mod tests;

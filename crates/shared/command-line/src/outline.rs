//! Outlines of the tables of several commands, for completions and manuals.

use crate::{
    help::description,
    kind::Kind,
    names::Names,
    row::{OptionSet, Support},
};

/// A command of a program, for completions and manuals.
#[derive(Clone, Debug)]
pub struct CommandOutline {
    /// The words that call it, with the program's name first: `galatea runtime install`.
    pub path: &'static str,
    /// A line without a full stop.
    pub summary: &'static str,
    /// Words that may follow it, besides options and further commands.
    pub words: &'static [&'static str],
    /// The words behind `galatea` that print further such words, one per line. They must be plain words without a meaning for
    /// shells.
    pub more_words: Option<&'static str>,
    /// The options in the order of the help.
    pub options: Vec<OptionOutline>,
}

/// An option without its action.
#[derive(Clone, Debug)]
pub struct OptionOutline {
    /// The heading above it; empty for none.
    pub group: &'static str,
    /// The names of the option.
    pub names: Names,
    /// The kind of its values.
    pub kind: Kind,
    /// The default as one would type it; empty when there is none.
    pub default: &'static str,
    /// Its help, with its default and its missing parts.
    pub text: String,
    /// It works as its text says.
    pub works: bool,
}

impl OptionOutline {
    /// Returns the text up to its first full stop, on one line.
    pub fn first_sentence(&self) -> String {
        let text: Vec<&str> = self.text.split_whitespace().collect();
        let text = text.join(" ");
        let end = text.find(". ").unwrap_or(text.len());
        text.get(..end).unwrap_or(&text).trim_end_matches('.').to_owned()
    }

    /// Returns the values it takes, if there are few.
    pub(crate) fn values(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Bool | Kind::OptionalBool => &["true", "false"],
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Returns whether a file may be its value.
    pub(crate) fn may_be_file(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::OptionalText(_) | Kind::Name | Kind::Form(_))
    }
}

/// Returns the options of a table.
pub fn outline<O: OptionSet>() -> Vec<OptionOutline> {
    let rows = O::groups().iter().flat_map(|group| group.rows.iter().map(|row| (group.title, row)));
    rows.map(|(group, row)| OptionOutline {
        group,
        names: row.names,
        kind: row.kind,
        default: row.default,
        text: description(row),
        works: row.support == Support::Works,
    })
    .collect()
}

/// Returns the commands directly below `path`, with the word that calls each.
pub(crate) fn below<'a>(
    commands: &'a [CommandOutline],
    path: &str,
) -> Vec<(&'a str, &'a CommandOutline)> {
    let word = |command: &'a CommandOutline| {
        let word = command.path.strip_prefix(path)?.strip_prefix(' ')?;
        (!word.contains(' ')).then_some((word, command))
    };
    commands.iter().filter_map(word).collect()
}

/// Returns the programs, which are the paths of one word.
pub(crate) fn programs(commands: &[CommandOutline]) -> Vec<&str> {
    commands.iter().map(|command| command.path).filter(|path| !path.contains(' ')).collect()
}

/// Returns a name for functions of a shell.
pub(crate) fn identifier(path: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("_{}", path.chars().map(letter).collect::<String>())
}

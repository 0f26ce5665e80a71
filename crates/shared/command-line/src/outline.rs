//! What the tables of several commands say, for the texts that are made of all of them: completions and manuals.

use crate::{
    help::description,
    kind::Kind,
    names::Names,
    row::{OptionSet, Support},
};

/// A command of a program, as texts about it need it.
#[derive(Clone, Debug)]
pub struct CommandOutline {
    /// The words that call it, the program's name first: `galatea runtime install`.
    pub path: &'static str,
    /// One line without a full stop.
    pub summary: &'static str,
    /// Words that may stand behind it, besides options and further commands.
    pub words: &'static [&'static str],
    /// The words behind `galatea` that print further such words, a line each: plain ones, which mean nothing else to a
    /// shell.
    pub more_words: Option<&'static str>,
    /// In the order of the help.
    pub options: Vec<OptionOutline>,
}

/// An option without what it does.
#[derive(Clone, Debug)]
pub struct OptionOutline {
    /// The heading it stands under; empty: none.
    pub group: &'static str,
    /// What it is called.
    pub names: Names,
    /// What values it takes.
    pub kind: Kind,
    /// As one would type it; empty when there is none.
    pub default: &'static str,
    /// What it does, with its default and what of it is missing.
    pub text: String,
    /// Whether it does what it says.
    pub works: bool,
}

impl OptionOutline {
    /// The text up to its first full stop, on one line.
    pub fn first_sentence(&self) -> String {
        let text: Vec<&str> = self.text.split_whitespace().collect();
        let text = text.join(" ");
        let end = text.find(". ").unwrap_or(text.len());
        text.get(..end).unwrap_or(&text).trim_end_matches('.').to_owned()
    }

    /// The values it takes, where there are few.
    pub(crate) fn values(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Bool | Kind::OptionalBool => &["true", "false"],
            Kind::Choice(choices) => choices,
            _ => &[],
        }
    }

    /// Whether a file may be its value.
    pub(crate) fn may_be_file(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::OptionalText(_) | Kind::Name | Kind::Form(_))
    }
}

/// The options of a table.
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

/// The commands directly below `path`, with the word that calls each.
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

/// The programs: what paths begin with, each once.
pub(crate) fn programs(commands: &[CommandOutline]) -> Vec<&str> {
    commands.iter().map(|command| command.path).filter(|path| !path.contains(' ')).collect()
}

/// A name for functions of a shell.
pub(crate) fn identifier(path: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("_{}", path.chars().map(letter).collect::<String>())
}

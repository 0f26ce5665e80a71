//! Reads a command line into the options of a command.

use crate::{
    error::{BadValue, CommandLineError},
    occurrence::Occurrence,
    row::{Action, Notice, OptionRow, OptionSet, Support, rows},
    words::{Item, Words},
};

/// A text that the user asks for in place of the command's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// `--help`, `-h`, `-?`
    Help,
    /// `--version`
    Version,
}

/// Reads the words behind the command's name into its options: first the defaults of the table, then the given options, in order.
/// The first `--help` or `--version` ends the reading.
pub fn parse<O: OptionSet>(
    words: impl IntoIterator<Item = String>,
    options: &mut O,
) -> Result<Option<Asked>, O::Error> {
    for row in rows::<O>().filter(|row| !row.default.is_empty()) {
        act(row, &occurrence(row, row.default.to_owned()), options)?;
    }
    let mut words = Words::<O, _>::new(words.into_iter());
    while let Some(item) = words.next() {
        match item? {
            Item::Word(word) => options.word(word)?,
            Item::Option(row, occurrence) => {
                if let Some(asked) = apply(row, &occurrence, options)? {
                    return Ok(Some(asked));
                }
            }
        }
    }
    Ok(None)
}

/// Reads the words behind the name of a command without a version of its own. `None` when the help is asked for.
pub fn read<O: OptionSet + Default>(
    words: impl IntoIterator<Item = String>,
) -> Result<Option<O>, O::Error> {
    let mut options = O::default();
    Ok(parse(words, &mut options)?.is_none().then_some(options))
}

fn occurrence<O: OptionSet>(row: &'static OptionRow<O>, text: String) -> Occurrence {
    Occurrence { names: &row.names, kind: row.kind, is_short: false, text }
}

fn apply<O: OptionSet>(
    row: &OptionRow<O>,
    occurrence: &Occurrence,
    options: &mut O,
) -> Result<Option<Asked>, O::Error> {
    let (option, text) = (occurrence.spelled(), &occurrence.text);
    if let Support::Refused(why) = row.support {
        return Err(CommandLineError::Refused { option, why }.into());
    }
    let checked = row.kind.check(&row.names.plain(), text);
    checked.map_err(|reason| BadValue { option: row.names.plain(), reason })?;
    if let Some(warning) = row.deprecation {
        options.notice(Notice::Warning(warning.to_owned()));
    }
    match row.support {
        Support::Missing(what) if !row.kind.is_same(text, row.default) => {
            options.notice(Notice::Missing { option, value: text.clone(), what });
        }
        Support::NoEffect(why) if text != row.default => {
            options.notice(Notice::NoEffect { option, value: text.clone(), why });
        }
        _ => {}
    }
    act(row, occurrence, options)
}

fn act<O: OptionSet>(
    row: &OptionRow<O>,
    occurrence: &Occurrence,
    options: &mut O,
) -> Result<Option<Asked>, O::Error> {
    match row.action {
        Action::Check => Ok(None),
        Action::Field(field) => {
            field(options).store(occurrence)?;
            Ok(None)
        }
        Action::Store(store) => store(options, occurrence).map(|()| None),
        Action::Help => Ok(Some(Asked::Help)),
        Action::Version => Ok(Some(Asked::Version)),
    }
}

#[cfg(test)]
mod tests;

//! Splits words into options as GNU `getopt_long` does: any order, `--name value`, `--name=value`, unique beginnings of long
//! names, `-p5`, `-p 5`, several letters in one word, `--` before words that are no options.

use std::iter::Peekable;

use galatea_types::suggest;

use crate::{
    error::CommandLineError,
    kind::{Kind, parse_bool},
    occurrence::Occurrence,
    row::{OptionRow, OptionSet, rows},
};

pub(crate) struct Words<O: OptionSet, I: Iterator<Item = String>> {
    words: Peekable<I>,
    /// The remaining letters of a word of letters.
    cluster: String,
    options_are_over: bool,
    set: std::marker::PhantomData<O>,
}

pub(crate) enum Item<O: OptionSet> {
    Option(&'static OptionRow<O>, Occurrence),
    Word(String),
}

type FoundOption<O> = Result<Item<O>, CommandLineError>;

impl<O: OptionSet, I: Iterator<Item = String>> Words<O, I> {
    pub(crate) fn new(words: I) -> Self {
        let set = std::marker::PhantomData;
        Self { words: words.peekable(), cluster: String::new(), options_are_over: false, set }
    }

    pub(crate) fn next(&mut self) -> Option<FoundOption<O>> {
        if !self.cluster.is_empty() {
            return Some(self.letter());
        }
        let word = self.words.next()?;
        if self.options_are_over {
            return Some(Ok(Item::Word(word)));
        }
        if word == "--" {
            self.options_are_over = true;
            return self.next();
        }
        if let Some(long) = word.strip_prefix("--") {
            return Some(self.long(long));
        }
        match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => Some(self.letters(letters)),
            _ => Some(Ok(Item::Word(word))),
        }
    }

    fn long(&mut self, long: &str) -> FoundOption<O> {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let row = find_long::<O>(name, long)?;
        let name = row.names.long;
        let text = match (row.kind, attached) {
            (Kind::Switch, None) => String::new(),
            (Kind::OptionalText(_), None) => String::new(),
            (Kind::Switch, Some(_)) => return Err(CommandLineError::TakesNoValue { name }),
            (_, Some(value)) => value,
            (Kind::OptionalBool, None) => {
                self.words.next_if(|word| parse_bool(word).is_some()).unwrap_or_default()
            }
            (_, None) => self.words.next().ok_or(CommandLineError::NeedsValue { name })?,
        };
        Ok(found(row, false, text))
    }

    /// Reads a word of letters, unless it is a long name behind one dash instead of two.
    fn letters(&mut self, letters: &str) -> FoundOption<O> {
        let name = letters.split('=').next().unwrap_or(letters);
        let is_long = name.chars().nth(1).is_some() && rows::<O>().any(|r| r.names.long == name);
        let first_is_known = letters.chars().next().is_some_and(|l| find_letter::<O>(l).is_some());
        if is_long || !first_is_known {
            let hint = nearest::<O>(name);
            if hint.is_some() {
                return Err(CommandLineError::Unknown { given: format!("-{letters}"), hint });
            }
        }
        self.cluster = letters.to_owned();
        self.letter()
    }

    fn letter(&mut self) -> FoundOption<O> {
        let cluster = std::mem::take(&mut self.cluster);
        let mut letters = cluster.chars();
        // The current cluster is never empty.
        let letter = letters.next().unwrap_or('-');
        let rest = letters.as_str().to_owned();
        let row = find_letter::<O>(letter).ok_or(CommandLineError::UnknownLetter { letter })?;
        let text = match row.kind.needs_value() {
            false => {
                self.cluster = rest;
                String::new()
            }
            true if !rest.is_empty() => rest,
            true => self.words.next().ok_or(CommandLineError::LetterNeedsValue { letter })?,
        };
        Ok(found(row, true, text))
    }
}

fn found<O: OptionSet>(row: &'static OptionRow<O>, is_short: bool, text: String) -> Item<O> {
    Item::Option(row, Occurrence { names: &row.names, kind: row.kind, is_short, text })
}

/// Returns the option with that letter; `?` asks for the help like `h`.
fn find_letter<O: OptionSet>(letter: char) -> Option<&'static OptionRow<O>> {
    let letter = if letter == '?' { 'h' } else { letter };
    rows::<O>().find(|row| row.names.short == Some(letter))
}

/// Returns the option of that name, or the only one whose name begins so. The original program's names come before ours.
fn find_long<O: OptionSet>(
    name: &str,
    typed: &str,
) -> Result<&'static OptionRow<O>, CommandLineError> {
    let with_dashes = name.replace('_', "-");
    let name = if O::TAKES_UNDERSCORES { with_dashes.as_str() } else { name };
    let given = format!("--{typed}");
    if name.is_empty() {
        return Err(CommandLineError::Unknown { given, hint: None });
    }
    if let Some(row) = rows::<O>().find(|row| row.names.long == name) {
        return Ok(row);
    }
    for is_own in [false, true] {
        let groups = O::groups().iter().filter(|group| group.is_own == is_own);
        let rows = groups.flat_map(|group| group.rows);
        let possible: Vec<_> = rows.filter(|row| row.names.long.starts_with(name)).collect();
        match possible.as_slice() {
            [] => {}
            [row] => return Ok(row),
            several => {
                let possible = several.iter().map(|row| row.names.long).collect();
                return Err(CommandLineError::Ambiguous { given, possible });
            }
        }
    }
    Err(unknown::<O>(name, given))
}

/// Makes the error of an unknown name. With a suggestion, it leaves out the value behind the wrong name.
fn unknown<O: OptionSet>(name: &str, given: String) -> CommandLineError {
    let hint = nearest::<O>(name);
    let without_value = given.split('=').next().unwrap_or(&given).to_owned();
    CommandLineError::Unknown { given: if hint.is_some() { without_value } else { given }, hint }
}

/// Returns the long name nearest to a mistyped one, with dashes.
fn nearest<O: OptionSet>(name: &str) -> Option<String> {
    let name = name.replace('_', "-");
    let names = rows::<O>().map(|row| row.names.long).filter(|long| !long.is_empty());
    suggest::nearest(&name, names).first().map(|name| format!("--{name}"))
}

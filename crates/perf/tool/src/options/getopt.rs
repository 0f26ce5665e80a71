//! Words into options, as GNU `getopt_long` does it: any order, `--name value`, `--name=value`, unique beginnings
//! of long names, `-p5`, `-p 5`, several short ones in one word, `--` before words that are no options. Beyond it,
//! long names may have `_` for `-`.

use std::iter::Peekable;

use super::{
    occurrence::Occurrence,
    spec::{Spec, Takes},
    table,
};

pub struct Words<I: Iterator<Item = String>> {
    words: Peekable<I>,
    /// What is left of a word of short options.
    cluster: String,
    options_are_over: bool,
}

pub enum Item {
    Option(Occurrence),
    Word(String),
}

/// An item, or the error that comes after the program's name.
type Found = Result<Item, String>;

impl<I: Iterator<Item = String>> Words<I> {
    pub fn new(words: I) -> Self {
        Self { words: words.peekable(), cluster: String::new(), options_are_over: false }
    }

    pub fn next(&mut self) -> Option<Found> {
        if !self.cluster.is_empty() {
            return Some(self.short());
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
            Some(cluster) if !cluster.is_empty() => {
                self.cluster = cluster.to_owned();
                Some(self.short())
            }
            _ => Some(Ok(Item::Word(word))),
        }
    }

    fn long(&mut self, long: &str) -> Found {
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let spec = find_long(name, long)?;
        let text = match (spec.takes, attached) {
            (Takes::Nothing, None) => String::new(),
            (Takes::Nothing, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", spec.long));
            }
            (Takes::Value(_) | Takes::Truth, Some(value)) => value,
            (Takes::Truth, None) => self.truth(),
            (Takes::Value(_), None) => self
                .words
                .next()
                .ok_or_else(|| format!("option '--{}' requires an argument", spec.long))?,
        };
        Ok(Item::Option(Occurrence { spec, is_short: false, text }))
    }

    /// The next word, if it is a truth value.
    fn truth(&mut self) -> String {
        let is_truth = |word: &String| table::truth(word).is_some();
        self.words.next_if(is_truth).unwrap_or_else(|| "true".to_owned())
    }

    fn short(&mut self) -> Found {
        let mut letters = self.cluster.chars();
        let Some(letter) = letters.next() else {
            return Err("invalid option".to_owned());
        };
        let rest = letters.as_str().to_owned();
        self.cluster.clear();
        // perf_analyzer's guide has `-?` for the help, too.
        let name = if letter == '?' { 'h' } else { letter };
        let spec = table::all()
            .find(|spec| spec.short == Some(name))
            .ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        let text = match spec.takes {
            Takes::Nothing | Takes::Truth => {
                self.cluster = rest;
                String::new()
            }
            Takes::Value(_) if !rest.is_empty() => rest,
            Takes::Value(_) => self
                .words
                .next()
                .ok_or_else(|| format!("option requires an argument -- '{letter}'"))?,
        };
        Ok(Item::Option(Occurrence { spec, is_short: true, text }))
    }
}

/// The option of that name, or the only one whose name begins so; perf_analyzer's names go before ours.
fn find_long(name: &str, typed: &str) -> Result<&'static Spec, String> {
    let name = name.replace('_', "-");
    if let Some(spec) = table::all().find(|spec| !name.is_empty() && spec.long == name) {
        return Ok(spec);
    }
    for is_ours in [false, true] {
        let possible: Vec<&'static Spec> = table::groups()
            .iter()
            .filter(|group| group.is_ours == is_ours)
            .flat_map(|group| group.specs)
            .filter(|spec| !spec.long.is_empty() && spec.long.starts_with(&name))
            .collect();
        match possible.as_slice() {
            [] => {}
            [spec] => return Ok(spec),
            several => {
                let names: String =
                    several.iter().map(|spec| format!(" '--{}'", spec.long)).collect();
                return Err(format!("option '--{typed}' is ambiguous; possibilities:{names}"));
            }
        }
    }
    Err(format!("unrecognized option '--{typed}'"))
}

//! What the table says of an option.

use super::{given::Given, occurrence::Occurrence};

/// Options of one topic, in the order the help shows them.
pub struct Group {
    pub title: &'static str,
    pub specs: &'static [Spec],
    /// Not perf_analyzer's: such names never make an abbreviation of one of its names ambiguous.
    pub is_ours: bool,
}

pub struct Spec {
    /// Without the dashes; empty: there is only the short form.
    pub long: &'static str,
    pub short: Option<char>,
    pub takes: Takes,
    pub help: &'static str,
    pub action: Action,
    /// What errors call it; empty: its names.
    pub meaning: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// The help's name for the value.
    Value(&'static str),
    /// Nothing, or `true` or `false`, also as the next word: the documented form and the one that works differ.
    Truth,
}

pub type Outcome = Result<(), String>;

#[derive(Clone, Copy)]
pub enum Action {
    /// The error is what comes after `Error: `.
    Set(fn(&mut Given, &Occurrence) -> Outcome),
    /// Without effect for a KServe server, as in perf_analyzer.
    Ignore,
    /// Cannot be had here, and why.
    Refuse(&'static str),
    Help,
    Version,
}

impl Spec {
    pub const fn new(long: &'static str, takes: Takes, help: &'static str, action: Action) -> Self {
        Self { long, short: None, takes, help, action, meaning: "" }
    }

    pub const fn value(
        long: &'static str,
        name: &'static str,
        help: &'static str,
        set: fn(&mut Given, &Occurrence) -> Outcome,
    ) -> Self {
        Self::new(long, Takes::Value(name), help, Action::Set(set))
    }

    pub const fn switch(
        long: &'static str,
        help: &'static str,
        set: fn(&mut Given, &Occurrence) -> Outcome,
    ) -> Self {
        Self::new(long, Takes::Nothing, help, Action::Set(set))
    }

    pub const fn ignored(long: &'static str, name: &'static str, help: &'static str) -> Self {
        Self::new(long, Takes::Value(name), help, Action::Ignore)
    }

    pub const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    pub const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = meaning;
        self
    }

    /// What errors call the option: `--max-trials (-r)`, `-b (batch size)`.
    pub fn label(&self) -> String {
        match (self.long, self.short, self.meaning) {
            ("", Some(short), "") => format!("-{short}"),
            ("", Some(short), meaning) => format!("-{short} ({meaning})"),
            (long, Some(short), _) => format!("--{long} (-{short})"),
            (long, None, _) => format!("--{long}"),
        }
    }
}

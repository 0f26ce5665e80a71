//! The flags of `serve`: one table that yields the parser, the help and the rows printed at start.
//!
//! Names, defaults and spellings are those of `tritonserver`; its whole command line is known here. What we
//! cannot do is refused by name, unless it is given with the value that asks for nothing.

mod error;
mod help;
mod parse;
mod rows;
mod table;
mod value;

pub use self::{
    error::FlagError,
    help::help,
    parse::{Parsed, parse},
    rows::rows,
    table::groups,
};

/// Flags of one topic, in the order the help shows them.
pub struct Group {
    pub title: &'static str,
    pub flags: &'static [Flag],
}

/// One command line flag.
#[derive(Debug)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    pub kind: Kind,
    /// As one would type it; empty when there is none.
    pub default: &'static str,
    pub help: &'static str,
    pub support: Support,
    /// Given instead of this one, when it is an alias or deprecated.
    pub stands_for: Option<&'static str>,
    /// Said when it is given.
    pub deprecation: Option<&'static str>,
    /// Its row in the table of options at start; `{}` is the index of a repeated one.
    pub row: Option<&'static str>,
}

/// What values a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// None at all.
    Switch,
    Bool,
    Integer {
        min: i64,
        max: i64,
    },
    Number,
    Text,
    /// Text that may not be empty.
    Name,
    /// One of these, in any case.
    Choice(&'static [&'static str]),
    /// Text in the form shown, whose parts are checked where they are used. May be repeated.
    Setting(&'static str),
    /// Text that may be repeated.
    List,
}

/// What becomes of a flag here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Works,
    /// Accepted without effect, and why.
    NoEffect(&'static str),
    /// Refused when it asks for something, and what would be needed.
    NotYet(&'static str),
}

impl Flag {
    const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        let support = Support::Works;
        Self { name, kind, default, help, support, stands_for: None, deprecation: None, row: None }
    }

    const fn no_effect(mut self, why: &'static str) -> Self {
        self.support = Support::NoEffect(why);
        self
    }

    const fn not_yet(mut self, what: &'static str) -> Self {
        self.support = Support::NotYet(what);
        self
    }

    const fn alias_of(mut self, name: &'static str) -> Self {
        self.stands_for = Some(name);
        self
    }

    const fn deprecated(mut self, warning: &'static str) -> Self {
        self.deprecation = Some(warning);
        self
    }

    const fn told_as(mut self, row: &'static str) -> Self {
        self.row = Some(row);
        self
    }

    pub fn takes_value(&self) -> bool {
        self.kind != Kind::Switch
    }
}

/// Every flag of every group.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    groups().iter().flat_map(|group| group.flags)
}

fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

#[cfg(test)]
mod tests;

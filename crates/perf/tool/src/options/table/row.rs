//! Constructors of the usual kinds of rows.

use galatea_command_line::{Kind, Occurrence, OptionRow};

use super::super::{error::OptionError, given_options::GivenOptions};

pub type Row = OptionRow<GivenOptions>;

/// The result of a closure of the table.
pub type Outcome = Result<(), OptionError>;

type Store = fn(&mut GivenOptions, &Occurrence) -> Outcome;

/// Makes an option with a value; `form` is the help's name for it.
pub const fn value(form: &'static str, store: Store) -> Row {
    Row::of(Kind::Form(form)).stores(store)
}

/// Makes an option without a value.
pub const fn switch(store: Store) -> Row {
    Row::of(Kind::Switch).stores(store)
}

/// Makes an option without effect for a KServe server, as in perf_analyzer.
pub const fn ignored(form: &'static str) -> Row {
    Row::of(Kind::Form(form)).no_effect("")
}

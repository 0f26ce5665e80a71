//! The usual kinds of rows.

use galatea_command_line::{Kind, Occurrence, OptionRow};

use super::super::{error::OptionError, given::GivenOptions};

pub type Row = OptionRow<GivenOptions>;

/// What a closure of the table returns.
pub type Outcome = Result<(), OptionError>;

type Store = fn(&mut GivenOptions, &Occurrence) -> Outcome;

/// An option with a value; `form` is the help's name for it.
pub const fn value(
    long: &'static str,
    form: &'static str,
    help: &'static str,
    store: Store,
) -> Row {
    Row::new(long, Kind::Form(form), help).stores(store)
}

/// An option without a value.
pub const fn switch(long: &'static str, help: &'static str, store: Store) -> Row {
    Row::new(long, Kind::Switch, help).stores(store)
}

/// Without effect for a KServe server, as in perf_analyzer.
pub const fn ignored(long: &'static str, form: &'static str, help: &'static str) -> Row {
    Row::new(long, Kind::Form(form), help).no_effect("")
}

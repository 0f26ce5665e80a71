//! The option parser of the program: `serve`, `perf` and `runtime` describe their options in tables, and this crate reads command
//! lines by them.
//!
//! A command declares a struct of its options and implements [`OptionSet`] for it. That gives it a table of [`OptionRow`]s:
//! names, kind of value, help, and a closure that stores the value into the struct. Then it calls [`parse`]. The same table gives
//! the [`help`] text, manuals and completion scripts for shells. Words are read as GNU `getopt_long` reads them. An unknown name
//! is refused with the nearest known name.
//!
//! **Invariants.** A value reaches its closure only when it fits the row's [`Kind`]. A value that does not fit is an error with
//! option and value, never a default. Nothing here prints or exits.

#![warn(missing_docs)]

mod completion;
mod error;
mod help;
mod kind;
mod manual;
mod names;
mod occurrence;
mod outline;
mod parse;
mod row;
mod store;
mod words;

pub use self::{
    completion::Shell,
    error::{BadValue, CommandLineError, ValueError},
    help::help,
    kind::{Kind, parse_bool},
    manual::{man_page, markdown},
    names::Names,
    occurrence::Occurrence,
    outline::{CommandOutline, OptionOutline, outline},
    parse::{Asked, parse, read},
    row::{Group, Notice, OptionRow, OptionSet, Support, rows},
    store::Store,
};

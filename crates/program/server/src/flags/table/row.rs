//! Parts that several rows of the table have.

use galatea_command_line::{Kind, OptionRow};

use super::super::serve_flags::ServeFlags;

pub(super) type Row = OptionRow<ServeFlags>;

pub(super) const fn at_least(min: i64) -> Kind {
    Kind::Integer { min, max: i32::MAX as i64 }
}

/// For values that are moved into their range instead of refused, as in Triton.
pub(super) const ANY: Kind = Kind::Integer { min: i32::MIN as i64, max: i32::MAX as i64 };

/// The port of a service that may be off. Then any number is accepted, as in Triton, so it is checked after all options.
pub(super) const PORT_IF_ON: Kind = ANY;

pub(super) const PORT: Kind = Kind::Integer { min: 0, max: u16::MAX as i64 };

/// The note on every option that sets numbers of threads, which this server chooses itself.
pub(super) const OWN_THREADS: &str =
    "threads are started as the load and the machine's cores ask for";

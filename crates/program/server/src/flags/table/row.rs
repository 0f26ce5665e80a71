//! Parts that several rows of the table share.

use galatea_command_line::{Kind, OptionRow};

use super::super::serve_flags::ServeFlags;

pub(super) type Row = OptionRow<ServeFlags>;

pub(super) const fn at_least(min: i64) -> Kind {
    Kind::Integer { min, max: i32::MAX as i64 }
}

/// For values that are brought into their range instead of refused, as Triton does.
pub(super) const ANY: Kind = Kind::Integer { min: i32::MIN as i64, max: i32::MAX as i64 };

/// A port of a service that may be off: then any number will do, as in Triton. It is checked when all options are known.
pub(super) const PORT_IF_ON: Kind = ANY;

pub(super) const PORT: Kind = Kind::Integer { min: 0, max: u16::MAX as i64 };

/// The note on every option that tunes threads we do not have.
pub(super) const OWN_THREADS: &str =
    "threads are started as the load and the machine's cores ask for";

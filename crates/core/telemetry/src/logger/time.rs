//! The instant of a line, in UTC.

use std::time::Duration;

use crate::calendar::{DateAndTime, write_micros};

/// `MMDD hh:mm:ss.ffffff`
pub(super) fn write_short(out: &mut String, since_epoch: Duration) {
    let text = DateAndTime::of(since_epoch);
    let part = |range| text.as_str().get(range).unwrap_or_default();
    out.push_str(part(5..7));
    out.push_str(part(8..10));
    out.push(' ');
    out.push_str(part(11..19));
    out.push('.');
    write_micros(out, since_epoch);
}

/// `YYYY-MM-DDThh:mm:ss`
pub(super) fn write_iso(out: &mut String, since_epoch: Duration) {
    out.push_str(DateAndTime::of(since_epoch).as_str());
}

/// `YYYY-MM-DDThh:mm:ss.ffffff`
pub(crate) fn write_iso_micros(out: &mut String, since_epoch: Duration) {
    write_iso(out, since_epoch);
    out.push('.');
    write_micros(out, since_epoch);
}

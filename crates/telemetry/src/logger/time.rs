//! The instant of a line, in UTC.

use std::{fmt::Write, time::Duration};

use crate::calendar::civil_date;

/// A second's date and time of day.
struct Moment {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Moment {
    fn of(seconds: u64) -> Self {
        let (year, month, day) = civil_date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Self { year, month, day, hour, minute, second }
    }
}

/// `MMDD hh:mm:ss.ffffff`
pub(super) fn write_short(out: &mut String, since_epoch: Duration) {
    let Moment { month, day, hour, minute, second, .. } = Moment::of(since_epoch.as_secs());
    let micros = since_epoch.subsec_micros();
    // Writing to a String cannot fail.
    let _ = write!(out, "{month:02}{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}");
}

/// `YYYY-MM-DDThh:mm:ss`
pub(super) fn write_iso(out: &mut String, since_epoch: Duration) {
    let Moment { year, month, day, hour, minute, second } = Moment::of(since_epoch.as_secs());
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
}

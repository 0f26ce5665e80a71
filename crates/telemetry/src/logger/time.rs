//! The instant of a line, in UTC.

use std::time::Duration;

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
    write_digits(out, 100 * month + day, 4);
    write_clock(out, ' ', hour, minute, second);
    out.push('.');
    write_digits(out, micros.into(), 6);
}

/// `YYYY-MM-DDThh:mm:ss`
pub(super) fn write_iso(out: &mut String, since_epoch: Duration) {
    let Moment { year, month, day, hour, minute, second } = Moment::of(since_epoch.as_secs());
    write_digits(out, year, 4);
    for number in [month, day] {
        out.push('-');
        write_digits(out, number, 2);
    }
    write_clock(out, 'T', hour, minute, second);
}

/// `YYYY-MM-DDThh:mm:ss.ffffff`
pub(super) fn write_iso_micros(out: &mut String, since_epoch: Duration) {
    write_iso(out, since_epoch);
    out.push('.');
    write_digits(out, since_epoch.subsec_micros().into(), 6);
}

fn write_clock(out: &mut String, before: char, hour: u64, minute: u64, second: u64) {
    for (sign, number) in [(before, hour), (':', minute), (':', second)] {
        out.push(sign);
        write_digits(out, number, 2);
    }
}

/// With zeros in front; every line has some, and the formatting of the standard library takes longer than all the rest.
fn write_digits(out: &mut String, number: u64, width: u32) {
    for place in (0..width).rev() {
        let digit = number / 10_u64.pow(place) % 10;
        out.push(char::from(b'0' + digit as u8));
    }
}

//! Dates and times of day, as text.

use std::{cell::Cell, time::Duration};

/// `YYYY-MM-DDThh:mm:ss`
#[derive(Clone, Copy)]
pub(crate) struct DateAndTime([u8; 19]);

thread_local! {
    /// The text of the last second asked for: thousands of lines share one second.
    static LAST: Cell<(u64, DateAndTime)> = const { Cell::new((0, DateAndTime(*b"1970-01-01T00:00:00"))) };
}

impl DateAndTime {
    /// Formats an instant in UTC.
    pub fn of(since_epoch: Duration) -> Self {
        let seconds = since_epoch.as_secs();
        let (last, text) = LAST.get();
        if seconds == last {
            return text;
        }
        let text = Self::of_second(seconds);
        LAST.set((seconds, text));
        text
    }

    fn of_second(seconds: u64) -> Self {
        let (year, month, day) = civil_date(seconds / 86_400);
        let mut text = *b"0000-00-00T00:00:00";
        let date = [year / 100, year % 100, month, day];
        let time = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
        let places = [0, 2, 5, 8, 11, 14, 17];
        for (place, number) in places.into_iter().zip(date.into_iter().chain(time)) {
            if let Some(to) = text.get_mut(place..place + 2) {
                to.copy_from_slice(&digits(number));
            }
        }
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Appends the microseconds as `ffffff`.
pub(crate) fn write_micros(out: &mut String, since_epoch: Duration) {
    let micros = u64::from(since_epoch.subsec_micros());
    for number in [micros / 10_000, micros / 100 % 100, micros % 100] {
        out.extend(digits(number).map(char::from));
    }
}

/// Returns the digits of a number below 100.
fn digits(number: u64) -> [u8; 2] {
    let digit = |number: u64| b'0' + (number % 10) as u8;
    [digit(number / 10), digit(number)]
}

/// Returns year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Counts in eras of 400 years that begin on 1 March, so that the leap day is the last day of its year.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_EPOCH: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_TO_EPOCH;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_formatted() {
        for (seconds, micros, expected) in [
            (0, 0, "1970-01-01T00:00:00.000000"),
            (1_795_261_534, 163_989, "2026-11-21T11:45:34.163989"),
            (1_795_261_534, 7, "2026-11-21T11:45:34.000007"),
            (4_107_542_399, 999_999, "2100-02-28T23:59:59.999999"),
        ] {
            let since_epoch = Duration::new(seconds, micros * 1000);
            let mut text = DateAndTime::of(since_epoch).as_str().to_owned() + ".";
            write_micros(&mut text, since_epoch);
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn dates_are_computed_from_days() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (789, (1972, 2, 29)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_778, (2026, 11, 21)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil_date(days), expected, "day {days}");
        }
    }
}

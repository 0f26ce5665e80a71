//! Formats numbers like a C++ output stream.

use galatea_perf_types::status::PerfStatus;

/// Above this share of late requests the report warns, in percent.
const DELAYED_LIMIT_PERCENT: f64 = 1.0;

/// The format of floats at a place of the report. perf_analyzer sets two decimals for the warning about late requests and
/// never resets it, so all floats after the first such warning have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// The format of [`general`].
    General,
    /// `printf`'s `%.2f`.
    TwoDecimals,
}

impl Notation {
    /// Returns the notation after these points were reported.
    pub fn after(points: &[PerfStatus]) -> Self {
        let is_late = |point: &PerfStatus| late_percent(point) > DELAYED_LIMIT_PERCENT;
        if points.iter().any(is_late) { Self::TwoDecimals } else { Self::General }
    }

    /// Formats a float for this place of the report.
    pub fn number(self, value: f64) -> String {
        match self {
            Self::General => general(value),
            Self::TwoDecimals => format!("{value:.2}"),
        }
    }

    /// Returns the share of late requests in percent, if the report must warn of it; this changes the notation.
    pub(crate) fn warn_of_late(&mut self, status: &PerfStatus) -> Option<f64> {
        let percent = late_percent(status);
        let is_late = percent > DELAYED_LIMIT_PERCENT;
        if is_late {
            *self = Self::TwoDecimals;
        }
        is_late.then_some(percent)
    }
}

fn late_percent(status: &PerfStatus) -> f64 {
    let client = &status.client;
    client.delayed_request_count as f64 / client.request_count as f64 * 100.0
}

/// Formats a float as a C++ stream does by default (`%g`): 6 significant digits, no zeros at the end, and an
/// exponent below 1e-4 and from 1e6 on.
pub fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return special(value);
    }
    // Rounding to 6 digits comes first: it can add a digit, as for 999999.5.
    let scientific = format!("{value:.5e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.unsigned_abs())
}

fn special(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let name = match value {
        _ if value.is_nan() => "nan",
        _ if value.is_infinite() => "inf",
        _ => "0",
    };
    format!("{sign}{name}")
}

fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn numbers_print_like_a_cpp_stream() {
        for (value, text) in [
            (10.2532, "10.2532"),
            (1234567.0, "1.23457e+06"),
            (12.18, "12.18"),
            (4000.0, "4000"),
            (0.0, "0"),
            (-0.0, "-0"),
            (93.2384, "93.2384"),
            (999999.0, "999999"),
            (999999.5, "1e+06"),
            (1e100, "1e+100"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (0.1 + 0.2, "0.3"),
            (-2.5, "-2.5"),
            (2884.744873, "2884.74"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(general(value), text, "{value:e}");
        }
    }
}

//! Numbers as a C++ output stream writes them.

/// A float as a C++ stream prints it by default (`%g`): 6 significant digits, no zeros at the end, and an
/// exponent below 1e-4 and from 1e6 on.
pub fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return special(value);
    }
    // Rounding to 6 digits comes first: 999999.5 has one digit more afterwards.
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
    fn prints_as_a_cpp_stream() {
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

//! Times as people read them.

/// Units and their nanoseconds.
const UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0)];

/// Formats nanoseconds with three significant digits: `812 ns`, `12.3 µs`, `4.21 ms`, `75.0 s`.
pub(crate) fn duration(ns: f64) -> String {
    // 999.5 rounds to 1000, which is 1.00 of the next unit.
    let fits = |unit: &&(&str, f64)| ns >= unit.1 * 0.9995;
    let (name, unit) = UNITS.iter().find(fits).copied().unwrap_or(("ns", 1.0));
    let value = ns / unit;
    let decimals = match value {
        _ if unit == 1.0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (7.0, "7 ns"),
            (999.0, "999 ns"),
            (999.6, "1.00 µs"),
            (1_000.0, "1.00 µs"),
            (12_345.0, "12.3 µs"),
            (999_400.0, "999 µs"),
            (999_600.0, "1.00 ms"),
            (4_211_000.0, "4.21 ms"),
            (75e9, "75.0 s"),
            (99.96e9, "100 s"),
            (1.5e13, "15000 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}

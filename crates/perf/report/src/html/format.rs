//! Numbers, times and names as people read them.

/// Above this nothing was measured, it was computed wrongly; below it all arithmetic here stays finite.
const LARGEST: f64 = 1e18;

/// A value that can be drawn and printed.
pub fn usable(value: f64) -> Option<f64> {
    (value.is_finite() && (0.0..=LARGEST).contains(&value)).then_some(value)
}

/// Three significant digits or all before the point, thousands grouped: `0.0123`, `1.23`, `12,345`.
pub fn number(value: f64) -> String {
    let Some(value) = usable(value) else { return "–".into() };
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e12).contains(&value) {
        return format!("{value:.2e}");
    }
    let decimals = (2.0 - value.log10().floor()).clamp(0.0, 7.0) as usize;
    grouped(&format!("{value:.decimals$}"))
}

/// A [`number`] without zeros at its end, for axes and loads: `0.5`, `12,000`.
pub fn short(value: f64) -> String {
    let text = number(value);
    match text.split_once('.') {
        Some((whole, rest)) if !text.contains('e') => match rest.trim_end_matches('0') {
            "" => whole.to_string(),
            rest => format!("{whole}.{rest}"),
        },
        _ => text,
    }
}

/// Tick labels of counts and rates: `500`, `2,500`, `1.5 M`.
pub fn tick(value: f64) -> String {
    match value {
        v if v >= 1e12 => format!("{} T", short(v / 1e12)),
        v if v >= 1e9 => format!("{} G", short(v / 1e9)),
        v if v >= 1e6 => format!("{} M", short(v / 1e6)),
        v => short(v),
    }
}

/// A share that is given in percent.
pub fn percent(value: f64) -> String {
    match usable(value) {
        Some(value) => format!("{} %", short((value * 10.0).round() / 10.0)),
        None => "–".into(),
    }
}

pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A value with its sign, in percent: `+3.1 %`, `−18 %`.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "−" } else { "+" };
    let size = percent.abs();
    if size < 10.0 { format!("{sign}{size:.1} %") } else { format!("{sign}{} %", number(size)) }
}

/// `×1.24`
pub fn times(ratio: f64) -> String {
    if ratio < 0.1 { format!("×{}", number(ratio)) } else { format!("×{ratio:.2}") }
}

/// A unit for times given in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub name: &'static str,
    us: f64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "s", us: 1e6 },
    Unit { name: "ms", us: 1e3 },
    Unit { name: "µs", us: 1.0 },
    Unit { name: "ns", us: 1e-3 },
];

impl Unit {
    pub fn of(us: f64) -> Self {
        let [_, _, microseconds, nanoseconds] = UNITS;
        match us {
            0.0 => microseconds,
            us => UNITS.into_iter().find(|unit| us >= unit.us).unwrap_or(nanoseconds),
        }
    }

    /// One for a whole table, so that its columns can be compared: that of the median.
    pub fn of_table(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter_map(usable).filter(|v| *v > 0.0).collect();
        values.sort_by(f64::total_cmp);
        Self::of(values.get(values.len() / 2).copied().unwrap_or(0.0))
    }

    pub fn write(self, us: f64) -> String {
        match usable(us) {
            Some(us) => number(us / self.us),
            None => "–".into(),
        }
    }
}

/// A time given in microseconds: `812 µs`, `1.20 ms`.
pub fn duration(us: f64) -> String {
    with_unit(us, number)
}

/// A [`duration`] for axes: `1.2 ms`.
pub fn tick_duration(us: f64) -> String {
    with_unit(us, short)
}

fn with_unit(us: f64, write: fn(f64) -> String) -> String {
    let Some(us) = usable(us) else { return "–".into() };
    if us == 0.0 {
        return "0".into();
    }
    let unit = Unit::of(us);
    format!("{}\u{a0}{}", write(us / unit.us), unit.name)
}

/// `9.50 – 10.5`
pub fn interval([low, high]: [f64; 2]) -> String {
    format!("{} – {}", number(low), number(high))
}

/// An interval of times, both ends in the same unit: `0.820 – 1.04 ms`.
pub fn durations([low, high]: [f64; 2]) -> String {
    let unit = Unit::of(high);
    format!("{} – {}\u{a0}{}", unit.write(low), unit.write(high), unit.name)
}

/// The same text as the beginning of a sentence.
pub fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    first.collect::<String>() + characters.as_str()
}

/// `concurrency 16`, `250 requests/s`.
pub fn load(mode: &str, value: f64) -> String {
    match mode {
        "concurrency" => format!("concurrency {}", short(value)),
        "request_rate" => format!("{} requests/s", short(value)),
        other => format!("{} {}", shortened(other, 1.0, 12.0), short(value)),
    }
}

/// A time of day from Unix seconds: `2026-07-27 14:03 UTC`.
pub fn date(unix: f64) -> String {
    let Some(seconds) = usable(unix).filter(|s| *s > 0.0 && *s < 2e11) else { return "–".into() };
    let seconds = seconds as u64;
    let (year, month, day) = civil(seconds / 86_400);
    let minutes = seconds % 86_400 / 60;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Year, month and day of a number of days after 1970-01-01; years are counted from March, so that the leap day is
/// their last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1_460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut text = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// About the width of a text, on the safe side: no fonts are asked here.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            '\u{1100}'.. => 1.05,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
            'A'..='Z' => 0.72,
            'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | ' ' | '\u{a0}' => 0.36,
            _ => 0.62,
        })
        .sum();
    em * size
}

/// The text, or its beginning and end with an ellipsis between where it would be too wide.
pub fn shortened(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let characters: Vec<char> = text.chars().collect();
    let cut = |keep: usize| -> String {
        let tail = keep / 3;
        let head = characters.iter().take(keep - tail);
        head.chain(&['…']).chain(characters.iter().skip(characters.len() - tail)).collect()
    };
    (1..characters.len())
        .rev()
        .map(cut)
        .find(|text| text_width(text, size) <= width)
        .unwrap_or_else(|| "…".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let values = [0.0, 0.00001, 0.0123, 1.0, 12.345, 999.5, 12_345.6, 1e13, f64::NAN, -1.0];
        let texts = values.map(number);
        assert_eq!(
            texts,
            ["0", "1.00e-5", "0.0123", "1.00", "12.3", "1,000", "12,346", "1.00e13", "–", "–"]
        );
        assert_eq!([0.5, 16.0, 2.25, 1e20].map(short), ["0.5", "16", "2.25", "–"]);
        assert_eq!([0.0, 2500.0, 1.5e6, 2e9].map(tick), ["0", "2,500", "1.5 M", "2 G"]);
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn times_and_ratios() {
        assert_eq!(
            [0.0, 0.25, 812.0, 1200.0, 2.5e6].map(duration),
            ["0", "250\u{a0}ns", "812\u{a0}µs", "1.20\u{a0}ms", "2.50\u{a0}s"]
        );
        assert_eq!(durations([820.0, 1040.0]), "0.820 – 1.04\u{a0}ms");
        assert_eq!(interval([9.5, 1200.0]), "9.50 – 1,200");
        assert_eq!(["average latency", ""].map(capitalized), ["Average latency", ""]);
        assert_eq!(tick_duration(1500.0), "1.5\u{a0}ms");
        assert_eq!([0.82, 1.031, 12.0].map(change), ["−18.0 %", "+3.1 %", "+1,100 %"]);
        assert_eq!([1.239, 0.012].map(times), ["×1.24", "×0.0120"]);
        assert_eq!(Unit::of_table([100.0, 2000.0, 3000.0].into_iter()).write(100.0), "0.100");
    }

    #[test]
    fn dates() {
        assert_eq!(date(951_827_696.0), "2000-02-29 12:34 UTC");
        assert_eq!(date(1_785_160_980.0), "2026-07-27 14:03 UTC");
        assert_eq!(date(1_735_689_599.0), "2024-12-31 23:59 UTC");
        assert_eq!(date(f64::NAN), "–");
    }

    #[test]
    fn long_names_keep_both_ends() {
        let name = "a_model_with_a_very_long_name_version_2";
        let text = shortened(name, 12.0, 120.0);
        assert!(text.starts_with("a_model") && text.ends_with("_2") && text.contains('…'));
        assert!(text_width(&text, 12.0) <= 120.0);
        assert_eq!(shortened("short", 12.0, 120.0), "short");
        assert_eq!(shortened("大", 12.0, 1.0), "…");
    }
}

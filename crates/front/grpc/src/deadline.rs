//! The time-out that a client sets for a call.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName};

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the time when the client stops waiting, by its `grpc-timeout`: up to eight digits and a unit.
pub(crate) fn deadline_of(headers: &HeaderMap) -> Option<Instant> {
    let text = headers.get(TIMEOUT)?.to_str().ok()?;
    Instant::now().checked_add(parse_timeout(text)?)
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_headers_are_parsed() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("99999999m", Some(Duration::from_millis(99_999_999))),
            ("5u", Some(Duration::from_micros(5))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("m", None),
            ("5", None),
            ("-5m", None),
            ("5é", None),
            ("123456789m", None),
            ("5x", None),
        ] {
            assert_eq!(parse_timeout(text), expected, "{text:?}");
        }
    }
}

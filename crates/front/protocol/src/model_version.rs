//! The version of a model in a request.

use galatea_types::{Error, Result};

#[derive(Debug, thiserror::Error)]
enum InvalidVersion {
    #[error("invalid model version specified '{0}' , version should be an integral value > 0")]
    Negative(String),
    #[error(
        "failed to get model version from specified version string '{0}' (details: stol), version should be an \
         integral value > 0"
    )]
    NotInteger(String),
}

impl From<InvalidVersion> for Error {
    fn from(error: InvalidVersion) -> Self {
        Self::invalid_arg(error.to_string())
    }
}

/// Parses the version in a path or message; an empty one asks for the highest version (`None`).
///
/// It accepts what Triton accepts, which reads the leading integer and ignores the rest: ` 1`, `+1`, `01` and `1x` all
/// mean version 1. Errors have Triton's texts.
pub fn parse_model_version(text: &str) -> Result<Option<i64>> {
    if text.is_empty() {
        return Ok(None);
    }
    match leading_integer(text) {
        Some(version) if version >= 0 => Ok(Some(version)),
        Some(_) => Err(InvalidVersion::Negative(text.to_owned()).into()),
        None => Err(InvalidVersion::NotInteger(text.to_owned()).into()),
    }
}

fn leading_integer(text: &str) -> Option<i64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let sign = usize::from(text.starts_with(['+', '-']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    // `from_str` accepts the sign, and refuses a lone sign and numbers that do not fit.
    text.get(..sign + digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_accepted_by_triton_are_accepted() {
        for (text, expected) in [
            ("", None),
            ("1", Some(1)),
            (" 1", Some(1)),
            ("+1", Some(1)),
            ("01", Some(1)),
            ("1x", Some(1)),
            ("1.5", Some(1)),
            ("0", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
        ] {
            assert_eq!(parse_model_version(text).expect(text), expected, "{text:?}");
        }
    }

    #[test]
    fn versions_refused_by_triton_are_refused() {
        let stol = |t: &str| {
            format!(
                "failed to get model version from specified version string '{t}' (details: stol), version \
                 should be an integral value > 0"
            )
        };
        for text in ["x", " ", "-", "+-1", "v1", "99999999999999999999", "é"] {
            assert_eq!(parse_model_version(text).expect_err(text).message(), stol(text));
        }
        assert_eq!(
            parse_model_version("-1").expect_err("negative").message(),
            "invalid model version specified '-1' , version should be an integral value > 0"
        );
    }
}

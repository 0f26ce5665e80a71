//! Tables of a policy as written: fields with their places. Unknown fields are refused.

use std::ops::Range;

use galatea_types::suggest::nearest;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};
use toml_datetime::{Datetime, Offset};

/// A mistake in a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}; {advice}")]
pub struct PolicyError {
    /// The file, as the caller named it.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The mistake.
    pub text: String,
    /// The advice.
    pub advice: String,
}

pub(super) type Result<T> = std::result::Result<T, PolicyError>;

/// Longest text of a field that an error repeats: it may be a secret in the wrong place.
const MAX_SHOWN: usize = 40;

/// The text that is read, and the name of its file.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub file: &'s str,
    pub text: &'s str,
}

impl Source<'_> {
    /// Makes the error for the bytes `span` of the text.
    pub fn error(
        &self,
        span: Range<usize>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> PolicyError {
        let source = self.text;
        let before = source.get(..span.start.min(source.len())).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        PolicyError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            text: text.into(),
            advice: advice.into(),
        }
    }
}

/// A value and its place.
pub(super) struct PlacedValue<'s> {
    pub value: &'s str,
    pub span: Range<usize>,
}

/// A table.
pub(super) struct Fields<'s> {
    source: Source<'s>,
    /// The name as written: `[[keys]]`.
    name: &'static str,
    table: &'s DeTable<'s>,
    span: Range<usize>,
}

impl<'s> Fields<'s> {
    /// Reads a table. Fails at a field that is not one of `known`.
    pub fn of(
        source: Source<'s>,
        name: &'static str,
        table: Spanned<&'s DeTable<'s>>,
        known: &[&str],
    ) -> Result<Self> {
        let (span, table) = (table.span(), table.into_inner());
        for key in table.keys() {
            let written: &str = key.get_ref();
            if known.contains(&written) {
                continue;
            }
            let advice = match nearest(written, known.iter().copied())[..] {
                [one, ..] => format!("did you mean '{one}'?"),
                [] => format!("it has {}", known.join(", ")),
            };
            let text = format!("{name} has no '{}'", shown(written));
            return Err(source.error(key.span(), text, advice));
        }
        Ok(Self { source, name, table, span })
    }

    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    fn get(&self, field: &str) -> Option<&'s Spanned<DeValue<'s>>> {
        self.table.get(field)
    }

    /// Makes an error about this field, which may be missing.
    pub fn wrong(
        &self,
        field: &str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> PolicyError {
        let span = self.get(field).map_or(self.span(), Spanned::span);
        self.source.error(span, text, advice)
    }

    /// Makes an error about a value.
    pub fn wrong_value(
        &self,
        value: &PlacedValue<'_>,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> PolicyError {
        self.source.error(value.span.clone(), text, advice)
    }

    fn kind(&self, field: &str, wanted: &str, example: &str) -> PolicyError {
        let text = format!("'{field}' of {} must be {wanted}", self.name);
        self.wrong(field, text, format!("write {field} = {example}"))
    }

    pub fn text(&self, field: &str, example: &str) -> Result<Option<PlacedValue<'s>>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(text) if !text.is_empty() => {
                Ok(Some(PlacedValue { value: text, span: value.span() }))
            }
            _ => Err(self.kind(field, "a text that is not empty", example)),
        }
    }

    pub fn needed_text(&self, field: &str, example: &str) -> Result<PlacedValue<'s>> {
        self.text(field, example)?.ok_or_else(|| {
            let text = format!("{} has no '{field}'", self.name);
            self.source.error(self.span(), text, format!("add {field} = {example}"))
        })
    }

    /// Reads a list of texts, or one text.
    pub fn texts(&self, field: &str, example: &str) -> Result<Option<Vec<PlacedValue<'s>>>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let wrong = || self.kind(field, "a list of texts", example);
        if let DeValue::Array(list) = value.get_ref() {
            let texts = list.iter().map(|one| {
                let text = one.get_ref().as_str().filter(|text| !text.is_empty());
                Ok(PlacedValue { value: text.ok_or_else(wrong)?, span: one.span() })
            });
            return texts.collect::<Result<_>>().map(Some);
        }
        Ok(self.text(field, example).map_err(|_| wrong())?.map(|text| vec![text]))
    }

    pub fn number(&self, field: &str, most: u64, default: u64) -> Result<u64> {
        let Some(value) = self.get(field) else { return Ok(default) };
        let number = value.get_ref().as_integer();
        let number = number.and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        let wanted = format!("a number from 0 to {most}");
        number
            .filter(|&number| number <= most)
            .ok_or_else(|| self.kind(field, &wanted, &default.to_string()))
    }

    /// Reads a date, or a time with its offset, as seconds since 1970.
    pub fn second(&self, field: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let second = value.get_ref().as_datetime().and_then(second_of);
        second.map(Some).ok_or_else(|| {
            self.kind(field, "a date, or a time with its offset", "2027-01-31T12:00:00Z")
        })
    }
}

/// Returns the beginning of a text from the file.
pub(super) fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or_default()
}

/// Returns the second since 1970. A date alone means its beginning in UTC.
fn second_of(at: &Datetime) -> Option<u64> {
    let date = at.date?;
    let (seconds, offset) = match (at.time, at.offset) {
        (None, None) => (0, 0),
        (Some(time), Some(offset)) => {
            let minutes = i64::from(time.hour) * 60 + i64::from(time.minute);
            let offset = match offset {
                Offset::Z => 0,
                Offset::Custom { minutes } => i64::from(minutes),
            };
            (minutes * 60 + i64::from(time.second.unwrap_or(0)), offset * 60)
        }
        _ => return None,
    };
    let days = days_since_1970(date.year.into(), date.month.into(), date.day.into());
    u64::try_from(days * 86_400 + seconds - offset).ok()
}

/// Counts years from March, so that a leap day is the last day of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_converted_to_seconds() {
        let second = |text: &str| second_of(&text.parse().expect("a time"));
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799)),
            ("2027-01-31T12:00:00Z", Some(1_801_396_800)),
            ("2027-01-31T12:00:00+02:00", Some(1_801_389_600)),
            ("1969-12-31T23:59:59Z", None),
            ("2027-01-31T12:00:00", None),
            ("12:00:00", None),
        ] {
            assert_eq!(second(text), expected, "{text}");
        }
    }
}

//! Parts of values that several options have.

use galatea_command_line::{BadValue, Kind, Occurrence};

/// A setting of the form `{owner},{key}={value}` or `{key}={value}`.
pub(in super::super) struct Setting<'a> {
    pub owner: Option<&'a str>,
    pub key: &'a str,
    pub value: &'a str,
}

impl<'a> Setting<'a> {
    /// Parses a setting. The owner ends at the first comma, and may be empty.
    pub fn parse(given: &'a Occurrence, form: &'static str) -> Result<Self, BadValue> {
        let (owner, setting) = match given.text.split_once(',') {
            Some((owner, setting)) => (Some(owner), setting),
            None => (None, given.text.as_str()),
        };
        let parts = setting.split_once('=').filter(|(key, value)| ![*key, *value].contains(&""));
        let (key, value) = parts.ok_or_else(|| given.malformed(form))?;
        Ok(Self { owner, key, value })
    }
}

/// Reads a whole number that is part of a value.
pub(in super::super) fn part<T: TryFrom<i64>>(
    given: &Occurrence,
    text: &str,
) -> Result<T, BadValue> {
    let kind = Kind::Integer { min: i64::MIN, max: i64::MAX };
    Occurrence { kind, text: text.to_owned(), ..given.clone() }.integer()
}

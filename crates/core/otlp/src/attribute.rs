//! Names and values, and lists of them as environment variables have them.

use percent_encoding::percent_decode_str;

/// A text with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl Attribute {
    /// Makes an attribute.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// Reads `NAME=VALUE`, which ends its name at the first `=`. `None` without a name or without `=`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, value) = text.split_once('=')?;
        (!name.is_empty()).then(|| Self::new(name, value))
    }
}

/// Reads a list `NAME=VALUE,...` with percent-encoded values. `None` if it is malformed.
pub(crate) fn list(text: &str) -> Option<Vec<Attribute>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            let Attribute { name, value } = Attribute::parse(entry)?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            Some(Attribute::new(name.trim(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_the_sign() {
        assert_eq!(Attribute::parse("a=b=c"), Some(Attribute::new("a", "b=c")));
        assert_eq!(Attribute::parse("a="), Some(Attribute::new("a", "")));
        assert_eq!((Attribute::parse("a"), Attribute::parse("=b")), (None, None));
    }

    #[test]
    fn lists_are_decoded_or_refused_whole() {
        let expected = vec![Attribute::new("a", "b c"), Attribute::new("d", "e,f")];
        assert_eq!(list("a=b%20c, d = e%2Cf ,"), Some(expected));
        assert_eq!(list(""), Some(Vec::new()));
        for bad in ["a", "a=1,b", "=1", "a=%ff"] {
            assert_eq!(list(bad), None, "{bad}");
        }
    }
}

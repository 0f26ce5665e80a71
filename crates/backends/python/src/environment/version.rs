//! Versions of Python, and the ranges of them that a model requires (the part of PEP 440 about releases).

use std::{cmp::Ordering, fmt, path::Path};

use galatea_types::{Error, Result};

/// Release number of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Parses `3.12.1`, `3.12` or `3.13.0rc1`: the numbers up to the first part that is none.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = release(text.trim())?;
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        Some(Self::new(at(0), at(1), at(2)))
    }

    fn numbers(self) -> [u32; 3] {
        [self.major, self.minor, self.patch]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

fn release(text: &str) -> Option<Vec<u32>> {
    if text.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '+' | '-')) {
        return None;
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let numbers = text.get(..end)?.trim_end_matches('.');
    numbers.split('.').map(|number| number.parse().ok()).collect()
}

/// A range of versions, e.g. `>=3.10,<3.13`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VersionRange {
    text: String,
    bounds: Vec<VersionBound>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct VersionBound {
    operator: Operator,
    numbers: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
    StartsWith,
    Differs,
    StartsOtherwise,
    Compatible,
}

impl VersionRange {
    /// Parses a range as in `requires-python`. A version without an operator means all versions that begin with it: `3.12`
    /// is any 3.12. Returns `None` if it cannot be read.
    pub fn parse(text: &str) -> Option<Self> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let bounds = parts.map(VersionBound::parse).collect::<Option<Vec<_>>>()?;
        (!bounds.is_empty()).then(|| Self { text: text.trim().to_owned(), bounds })
    }

    /// Parses the range in the `setting` of a file.
    pub fn of_file(file: &Path, setting: &str, text: &str) -> Result<Self> {
        Self::parse(text).ok_or_else(|| {
            Error::invalid_arg(format!(
                "'{}': '{text}' of {setting} is not a Python version; write e.g. '3.12' or '>=3.10,<3.13'",
                file.display()
            ))
        })
    }

    pub fn contains(&self, version: Version) -> bool {
        self.bounds.iter().all(|bound| bound.allows(version))
    }

    /// Returns true if a release of this major and minor number may be in the range.
    pub fn contains_any_patch(&self, version: Version) -> bool {
        const HIGHEST: u32 = 99;
        (0..=HIGHEST).any(|patch| self.contains(Version { patch, ..version }))
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl VersionBound {
    fn parse(text: &str) -> Option<Self> {
        let start = text.find(|c: char| c.is_ascii_digit())?;
        let (operator, version) = text.split_at(start);
        let (version, is_prefix) = match version.strip_suffix(".*") {
            Some(prefix) => (prefix, true),
            None => (version, false),
        };
        let operator = match (operator.trim(), is_prefix) {
            ("", _) | ("==", true) => Operator::StartsWith,
            ("!=", true) => Operator::StartsOtherwise,
            ("==" | "===", false) => Operator::Equal,
            ("!=", false) => Operator::Differs,
            (">=", false) => Operator::AtLeast,
            ("<=", false) => Operator::AtMost,
            (">", false) => Operator::Above,
            ("<", false) => Operator::Below,
            ("~=", false) => Operator::Compatible,
            _ => return None,
        };
        Some(Self { operator, numbers: release(version.trim())? })
    }

    fn allows(&self, version: Version) -> bool {
        let order = self.compare(version);
        match self.operator {
            Operator::AtLeast => order.is_ge(),
            Operator::AtMost => order.is_le(),
            Operator::Above => order.is_gt(),
            Operator::Below => order.is_lt(),
            Operator::Equal => order.is_eq(),
            Operator::Differs => order.is_ne(),
            Operator::StartsWith => starts_with(version, &self.numbers),
            Operator::StartsOtherwise => !starts_with(version, &self.numbers),
            Operator::Compatible => {
                let family = self.numbers.split_last().map_or(&[][..], |(_, family)| family);
                order.is_ge() && starts_with(version, family)
            }
        }
    }

    fn compare(&self, version: Version) -> Ordering {
        let mine = self.numbers.iter().copied().chain(std::iter::repeat(0));
        version.numbers().into_iter().cmp(mine.take(3))
    }
}

fn starts_with(version: Version, numbers: &[u32]) -> bool {
    version.numbers().iter().zip(numbers).all(|(have, want)| have == want)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: &str, inside: &[&str], outside: &[&str]) {
        let parsed = VersionRange::parse(range).expect("a range");
        for (versions, expected) in [(inside, true), (outside, false)] {
            for version in versions {
                let version = Version::parse(version).expect("a version");
                assert_eq!(parsed.contains(version), expected, "{version} in {range}");
            }
        }
    }

    #[test]
    fn version_ranges_match_their_versions() {
        check("3.12", &["3.12.0", "3.12.7"], &["3.11.9", "3.13.0", "3.1.2"]);
        check("3.12.1", &["3.12.1"], &["3.12.2"]);
        check(">=3.10,<3.13", &["3.10.0", "3.12.9"], &["3.9.18", "3.13.0"]);
        check(">= 3.9 , != 3.11.*", &["3.9.0", "3.12.0"], &["3.11.4"]);
        check("~=3.10", &["3.10.0", "3.14.2"], &["3.9.9", "4.0.0"]);
        check("~=3.10.2", &["3.10.2", "3.10.9"], &["3.10.1", "3.11.0"]);
        check("==3.11.*", &["3.11.7"], &["3.12.0"]);
        check("==3.11", &["3.11.0"], &["3.11.1"]);
        check(">3.11,<=3.12.1", &["3.11.1", "3.12.1"], &["3.11.0", "3.12.2"]);
    }

    #[test]
    fn a_range_matches_every_minor_version_with_a_matching_patch() {
        let range = VersionRange::parse(">3.11.4,<3.13").expect("a range");
        let minors = (8..15).filter(|&minor| range.contains_any_patch(Version::new(3, minor, 0)));
        assert_eq!(minors.collect::<Vec<_>>(), [11, 12]);
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in ["", "three", ">=", "=>3.9", "3.9 || 3.10", ">=3.9.*"] {
            assert!(VersionRange::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_pre_release_counts_as_its_release() {
        assert_eq!(Version::parse("3.13.0rc1"), Some(Version::new(3, 13, 0)));
        assert_eq!(Version::parse("pypy"), None);
    }
}

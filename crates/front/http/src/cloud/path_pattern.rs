//! Patterns of paths that a platform chooses.

use galatea_frontend::PatternError;
use regex::{Regex, RegexBuilder};

/// A pattern that matches whole paths. A plain path matches itself.
#[derive(Clone, Debug)]
pub struct PathPattern(Regex);

impl PathPattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When `pattern` is no regular expression, or is too long.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        let whole = format!("^(?:{pattern})$");
        PatternError::or_built(pattern, &mut RegexBuilder::new(&whole)).map(Self)
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for PathPattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_must_match_the_whole_path() {
        for (pattern, path, expected) in [
            ("/predict", "/predict", true),
            ("/predict", "/predict/", false),
            ("/predict", "/v/predict", false),
            ("/p[0-9]+", "/p12", true),
            ("/p[0-9]+", "/p", false),
            ("/a|/b", "/a", true),
            ("/a|/b", "/ab", false),
            ("/v1/endpoints/5.x:predict", "/v1/endpoints/5.x:predict", true),
        ] {
            let pattern = PathPattern::new(pattern).expect("an expression");
            assert_eq!(pattern.matches(path), expected, "{pattern:?} {path}");
        }
        let error = PathPattern::new("/(").expect_err("none").to_string();
        assert!(error.starts_with("'/(' is not a regular expression"), "{error}");
        assert!(PathPattern::new("a{1000}{1000}{1000}").is_err(), "too long");
    }
}

//! Patterns with stars for names of models and identities.

/// A name in which each `*` matches any characters, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// Makes a pattern from its text. Every text is valid.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns whether it matches every name.
    pub fn is_everything(&self) -> bool {
        !self.0.is_empty() && self.0.bytes().all(|byte| byte == b'*')
    }

    /// Returns whether it matches the name.
    pub fn matches(&self, name: &str) -> bool {
        self.matches_with(name, |_| true)
    }

    /// Returns whether it matches a distinguished name: a star does not match the comma before the next attribute.
    pub fn matches_subject(&self, subject: &str) -> bool {
        self.matches_with(subject, |byte| byte != b',')
    }

    /// Matches a name. `is_covered` says which bytes a star may match. It goes back to the last star only, so the time is at most
    /// the product of both lengths.
    fn matches_with(&self, name: &str, is_covered: impl Fn(u8) -> bool) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut of_name) = (0, 0);
        let mut last_star = None;
        while let Some(&byte) = name.get(of_name) {
            match pattern.get(at) {
                Some(b'*') => {
                    last_star = Some((at, of_name));
                    at += 1;
                    continue;
                }
                Some(&wanted) if wanted == byte => {
                    (at, of_name) = (at + 1, of_name + 1);
                    continue;
                }
                _ => {}
            }
            match last_star {
                Some((star, covered)) if name.get(covered).is_some_and(|&b| is_covered(b)) => {
                    last_star = Some((star, covered + 1));
                    (at, of_name) = (star + 1, covered + 1);
                }
                _ => return false,
            }
        }
        pattern.iter().skip(at).all(|&byte| byte == b'*')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, good, bad) in [
            ("resnet", &["resnet"][..], &["resnet5", "xresnet", ""][..]),
            ("resnet*", &["resnet", "resnet50"], &["xresnet", "resne"]),
            ("*-v2", &["a-v2", "-v2", "a-v2-v2"], &["a-v2x", "v2"]),
            ("a*b*c", &["abc", "axxbyyc", "abbcbc"], &["ab", "acb", "xabc"]),
            ("*", &["", "a", "é"], &[]),
            ("", &[""], &["a"]),
        ] {
            let pattern = Pattern::new(pattern);
            assert!(good.iter().all(|name| pattern.matches(name)), "{pattern:?}");
            assert!(!bad.iter().any(|name| pattern.matches(name)), "{pattern:?}");
        }
        assert!(Pattern::new("**").is_everything() && !Pattern::new("").is_everything());
    }

    #[test]
    fn a_star_does_not_cross_attributes_of_a_subject() {
        let pattern = Pattern::new("CN=*,O=Example");
        assert!(pattern.matches_subject("CN=a b,O=Example"));
        assert!(!pattern.matches_subject("CN=a,O=Other,O=Example"));
        assert!(pattern.matches("CN=a,O=Other,O=Example"));
        assert!(!Pattern::new("CN=*").matches_subject("CN=a,O=Other"));
    }

    #[test]
    fn many_stars_are_matched_in_linear_time() {
        let pattern = Pattern::new(&"a*".repeat(200));
        assert!(!pattern.matches(&format!("{}b", "b".repeat(20_000))));
        assert!(!Pattern::new(&format!("{}b", "*a".repeat(100))).matches(&"a".repeat(20_000)));
    }
}

//! The target of a request: the second word of its first line.

use http::Uri;

use crate::HeadError;

pub(crate) enum Target {
    /// The path is a prefix; the query follows the question mark after it.
    Plain {
        /// The length of the path in bytes.
        path: usize,
    },
    /// Any of the other forms, or one with a fragment.
    Other(Uri),
}

impl Target {
    /// Parses the text between the spaces.
    pub fn parse(text: &str) -> Result<Self, HeadError> {
        let bytes = text.as_bytes();
        if bytes.first() == Some(&b'/') && bytes.iter().all(|byte| PLAIN[usize::from(*byte)]) {
            return Ok(Self::Plain { path: memchr::memchr(b'?', bytes).unwrap_or(bytes.len()) });
        }
        Uri::try_from(bytes).map(Self::Other).map_err(|_| HeadError::Target)
    }
}

/// Bytes without a special meaning anywhere in a path or query, by RFC 3986.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let marks = b"-._~!$&'()*+,;=:@/?%";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = true;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(target: &Target, text: &str) -> (String, Option<String>) {
        match target {
            Target::Plain { path } => {
                (text[..*path].to_owned(), text.get(path + 1..).map(str::to_owned))
            }
            Target::Other(uri) => (uri.path().to_owned(), uri.query().map(str::to_owned)),
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_agrees_with_the_full_uri_parser(text in "/[ -~é]{0,20}") {
            let long = Uri::try_from(text.as_bytes());
            match Target::parse(&text) {
                Err(_) => prop_assert!(long.is_err()),
                Ok(target) => {
                    let uri = Target::Other(long.expect("taken by both"));
                    prop_assert_eq!(shown(&target, &text), shown(&uri, &text));
                }
            }
        }
    }
}

//! Headers of a request that become parameters for its model.

use galatea_types::{Error, InferRequest, ParameterValue, RESERVED_PARAMETERS};
use regex::{Regex, RegexBuilder};

/// The most memory, in bytes, for a compiled expression.
const MAX_EXPRESSION: usize = 1 << 20;

/// The headers that become parameters. By default none does.
#[derive(Clone, Debug, Default)]
pub struct HeaderForwarding {
    pattern: Option<Regex>,
}

/// The error for a pattern that is no regular expression or takes too much memory.
#[derive(Debug, thiserror::Error)]
#[error("'{pattern}' is not a regular expression: {source}")]
pub struct PatternError {
    pattern: String,
    source: Box<regex::Error>,
}

impl PatternError {
    /// Compiles an expression that the operator wrote as `pattern`.
    ///
    /// # Errors
    /// When `pattern` is no regular expression, or compiles to more than 1 MiB.
    pub fn or_built(pattern: &str, builder: &mut RegexBuilder) -> Result<Regex, Self> {
        let built = builder.size_limit(MAX_EXPRESSION).build();
        built.map_err(|source| Self { pattern: pattern.to_owned(), source: Box::new(source) })
    }
}

impl HeaderForwarding {
    /// Forwards headers whose names contain a match. Case is ignored unless the expression says `(?-i)`. The empty
    /// expression matches none.
    pub fn matching(pattern: &str) -> Result<Self, PatternError> {
        if pattern.is_empty() {
            return Ok(Self::default());
        }
        let mut builder = RegexBuilder::new(pattern);
        let pattern = PatternError::or_built(pattern, builder.case_insensitive(true))?;
        Ok(Self { pattern: Some(pattern) })
    }

    /// Returns `true` if any header may become a parameter.
    pub fn is_active(&self) -> bool {
        self.pattern.is_some()
    }

    /// Adds the matching headers to the parameters of a request. A header with a name that the protocol reserves is
    /// refused.
    pub fn forward<'h>(
        &self,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
        request: &mut InferRequest,
    ) -> Result<(), Error> {
        let Some(pattern) = &self.pattern else { return Ok(()) };
        for (name, value) in headers {
            if !pattern.is_match(name) {
                continue;
            }
            if is_reserved(name) {
                let text = format!(
                    "Header '{name}' is reserved for Triton usage and cannot be forwarded."
                );
                return Err(Error::invalid_arg(text));
            }
            let value = String::from_utf8_lossy(value).into_owned();
            request.parameters.push((name.to_owned(), ParameterValue::String(value)));
        }
        Ok(())
    }
}

/// Ignores case: clients choose it, and proxies may change it.
fn is_reserved(name: &str) -> bool {
    let is_prefixed = name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("triton_"));
    let mut reserved = RESERVED_PARAMETERS.iter().chain(&["headers"]);
    is_prefixed || reserved.any(|reserved| name.eq_ignore_ascii_case(reserved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(pattern: &str, headers: &[(&str, &str)]) -> Result<Vec<String>, Error> {
        let forwarding = HeaderForwarding::matching(pattern).expect("an expression");
        let mut request = InferRequest::new("m");
        let headers = headers.iter().map(|&(name, value)| (name, value.as_bytes()));
        forwarding.forward(headers, &mut request)?;
        let shown = |(name, value): (String, ParameterValue)| format!("{name}={value:?}");
        Ok(request.parameters.into_iter().map(shown).collect())
    }

    #[test]
    fn matching_headers_become_text_parameters() {
        let headers = [("x-a", "1"), ("my-x-b", "two"), ("host", "h"), ("x-a", "3")];
        let found = forwarded("x-.", &headers).expect("good");
        assert_eq!(found, ["x-a=String(\"1\")", "my-x-b=String(\"two\")", "x-a=String(\"3\")"]);
        assert!(forwarded("", &headers).expect("good").is_empty());
        assert_eq!(forwarded("^host$", &headers).expect("good").len(), 1);
        assert_eq!(forwarded("HOST", &headers).expect("good").len(), 1);
        assert!(forwarded("(?-i)HOST", &headers).expect("good").is_empty());
    }

    #[test]
    fn headers_with_reserved_names_are_refused() {
        for name in ["sequence_id", "Priority", "timeout", "headers", "triton_x", "TRITON_x"] {
            let text = forwarded(".*", &[(name, "1")]).expect_err(name).message().to_owned();
            let expected =
                format!("Header '{name}' is reserved for Triton usage and cannot be forwarded.");
            assert_eq!(text, expected);
            assert!(forwarded("other", &[(name, "1")]).expect("not matched").is_empty());
        }
    }

    #[test]
    fn invalid_or_expensive_expressions_are_refused() {
        for pattern in ["(", "a{1000}{1000}{1000}", "(?=x)"] {
            let error = HeaderForwarding::matching(pattern).expect_err(pattern).to_string();
            assert!(
                error.starts_with(&format!("'{pattern}' is not a regular expression: ")),
                "{error}"
            );
        }
    }
}

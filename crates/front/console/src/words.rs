//! The forms of keys and times on the page.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns a key that identifies a version, since no name contains a slash.
pub(crate) fn key(namespace: &str, name: &str, version: Option<i64>) -> String {
    let version = version.map_or_else(|| "-".to_owned(), |version| version.to_string());
    match namespace {
        "" => format!("{name}/{version}"),
        namespace => format!("{namespace}//{name}/{version}"),
    }
}

/// Returns the milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_versions_and_namespaces_apart() {
        assert_eq!(key("", "m", Some(1)), "m/1");
        assert_eq!(key("", "m", None), "m/-");
        assert_eq!(key("/models", "m", Some(1)), "/models//m/1");
    }
}

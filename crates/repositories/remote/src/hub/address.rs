//! Parses `hf://ORG/MODEL[@REVISION][/PATH]`.

use crate::error::{FailureKind, RemoteError};

/// Beginning of addresses of the hub.
pub const SCHEME: &str = "hf://";

/// Most characters of the name of an organisation or a model, and of a revision.
const MAX_NAME: usize = 96;
const MAX_REVISION: usize = 200;

/// A repository of a hub, or a folder or file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    /// `ORG/MODEL`.
    pub repository: String,
    /// A branch, tag or commit.
    pub revision: String,
    /// Folder or file in it, without slashes at its ends. Empty for the whole repository.
    pub path: String,
}

impl HubAddress {
    /// # Errors
    /// The fault of the address.
    pub fn parse(given: &str) -> Result<Self, RemoteError> {
        let fail = |problem: &str| {
            let text = format!(
                "'{given}' is not the address of a model hub: {problem}; it is hf://ORG/MODEL[@REVISION][/PATH]"
            );
            RemoteError::new(FailureKind::Invalid, text)
        };
        let rest =
            given.strip_prefix(SCHEME).ok_or_else(|| fail("it does not begin with hf://"))?;
        let mut parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
        if matches!(parts.first(), Some(&("datasets" | "spaces" | "buckets"))) {
            return Err(fail("it is not the address of a model"));
        }
        if parts.len() < 2 {
            return Err(fail("it lacks an organisation or a model"));
        }
        let (name, revision, used) = name_and_revision(&parts);
        if ![parts[0], name].into_iter().all(is_name) {
            return Err(fail("names may have letters, digits, '-', '_' and '.'"));
        }
        if !is_revision(&revision) {
            return Err(fail("its revision has characters that are not allowed"));
        }
        let repository = format!("{}/{name}", parts[0]);
        let path = parts.split_off(used);
        if path.iter().any(|part| matches!(*part, "." | "..") || part.contains(is_odd)) {
            return Err(fail("its path leaves the repository"));
        }
        Ok(Self { repository, revision, path: path.join("/") })
    }

    /// Returns the model's own name.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns name, revision, and their number of parts in the address. A revision such as `refs/pr/1` contains slashes.
fn name_and_revision<'a>(parts: &[&'a str]) -> (&'a str, String, usize) {
    let Some((name, revision)) = parts[1].split_once('@') else {
        return (parts[1], "main".to_owned(), 2);
    };
    match parts.get(2..4) {
        Some(&[kind @ ("pr" | "convert"), which]) if revision == "refs" => {
            (name, format!("refs/{kind}/{which}"), 4)
        }
        _ => (name, revision.replace("%2F", "/"), 2),
    }
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with('.')
        && !name.contains("..")
}

fn is_revision(revision: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./+".contains(&byte);
    (1..=MAX_REVISION).contains(&revision.len())
        && revision.bytes().all(is_plain)
        && !revision.contains("..")
        && !revision.starts_with('/')
}

fn is_odd(c: char) -> bool {
    c.is_control() || c == '\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_form_is_parsed() {
        for (given, expected) in [
            ("hf://org/model", "org/model main "),
            ("hf://org/model/", "org/model main "),
            ("hf://org/model@v1.0/onnx/model.onnx", "org/model v1.0 onnx/model.onnx"),
            ("hf://org/model@refs/pr/3/x", "org/model refs/pr/3 x"),
            ("hf://org/model@refs%2Fpr%2F3", "org/model refs/pr/3 "),
            ("hf://org/model//a//b.onnx", "org/model main a/b.onnx"),
        ] {
            let found = HubAddress::parse(given).expect(given);
            assert_eq!(format!("{} {} {}", found.repository, found.revision, found.path), expected);
        }
        assert_eq!(HubAddress::parse("hf://org/a.b").expect("fine").name(), "a.b");
    }

    #[test]
    fn invalid_addresses_are_reported() {
        for (given, problem) in [
            ("hf://", "lacks an organisation or a model"),
            ("hf://model", "lacks an organisation or a model"),
            ("hf://datasets/org/x", "not the address of a model"),
            ("hf://org/mo del", "names may have letters"),
            ("hf://../model", "names may have letters"),
            ("hf://org/model@", "revision"),
            ("hf://org/model@a b", "revision"),
            ("hf://org/model@../../x", "revision"),
            ("hf://org/model/../x", "leaves the repository"),
            ("s3://org/model", "does not begin"),
        ] {
            let text = HubAddress::parse(given).expect_err(given).to_string();
            assert!(text.contains(problem) && text.contains("hf://ORG/MODEL"), "{text}");
        }
    }
}

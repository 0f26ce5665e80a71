//! Chooses the credentials for an address: those in the file that `TRITON_CLOUD_CREDENTIAL_PATH` names, else those of the
//! environment.

use std::{collections::HashMap, fmt, path::Path};

use galatea_types::Environment;
use serde_json::Value;

use crate::error::{FailureKind, RemoteError};

const VARIABLE: &str = "TRITON_CLOUD_CREDENTIAL_PATH";

/// Most bytes of a file of credentials.
const MOST_BYTES: u64 = 1 << 20;

/// Members of an entry of the file. `None`: there is no file.
#[derive(Clone, Default)]
pub struct Credential {
    members: Option<HashMap<String, String>>,
}

/// The whole file: the entries of each service, each for the addresses that begin with its name.
type Entries = HashMap<String, HashMap<String, Value>>;

impl Credential {
    /// Finds the entry for an address as the user wrote it.
    pub fn find(
        environment: &Environment,
        service: &str,
        address: &str,
    ) -> Result<Self, RemoteError> {
        match environment.path(VARIABLE) {
            Some(path) => Self::of_text(&read(&path)?, &path, service, address),
            None => Ok(Self::default()),
        }
    }

    fn of_text(text: &str, path: &Path, service: &str, address: &str) -> Result<Self, RemoteError> {
        let entries: Entries = serde_json::from_str(text).map_err(|error| {
            // The text omits the value, which may be a secret.
            let place = format!("line {}, column {}", error.line(), error.column());
            invalid(
                path,
                &format!(
                    "it is not JSON of the form {{\"s3\": {{\"\": {{\"key_id\": ...}}}}}} ({place})"
                ),
            )
        })?;
        let entries = entries.get(service).into_iter().flatten();
        let fitting = entries.filter(|(name, _)| address.starts_with(name.as_str()));
        let Some((name, value)) = fitting.max_by_key(|(name, _)| name.len()) else {
            // Triton's text, with its two spaces.
            let text = format!("Cannot match credential for path  {address}");
            return Err(RemoteError::new(FailureKind::Denied, text));
        };
        log::debug!("using credential '{name}' of '{}' for '{address}'", path.display());
        let members = match value {
            Value::String(file) => [("file".to_owned(), file.clone())].into(),
            Value::Object(members) => {
                let text = |(key, value): (&String, &Value)| {
                    Some((key.clone(), value.as_str()?.to_owned()))
                };
                members.iter().filter_map(text).collect()
            }
            _ => {
                return Err(invalid(
                    path,
                    &format!("'{service}' has neither text nor members for '{name}'"),
                ));
            }
        };
        Ok(Self { members: Some(members) })
    }

    /// Returns a member that is not empty. `variable` is read instead if there is no file.
    pub fn get(&self, member: &str, environment: &Environment, variable: &str) -> Option<String> {
        match &self.members {
            Some(members) => members.get(member).filter(|value| !value.is_empty()).cloned(),
            None => environment.text(variable),
        }
    }
}

fn read(path: &Path) -> Result<String, RemoteError> {
    let read = galatea_regular_files::read_text(path, MOST_BYTES);
    read.map_err(|error| invalid(path, &error.to_string()))
}

fn invalid(path: &Path, problem: &str) -> RemoteError {
    let text =
        format!("the credentials in '{}' ({VARIABLE}) cannot be read: {problem}", path.display());
    RemoteError::new(FailureKind::Denied, text)
}

/// Omits secret values.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
        "gs": {"": "/default.json", "gs://models": "/models.json"},
        "s3": {"s3://models": {"key_id": "A", "secret_key": "B", "region": ""},
               "s3://models/private": {"profile": "p"}}
    }"#;

    fn find(service: &str, address: &str, member: &str) -> Result<Option<String>, String> {
        let found = Credential::of_text(FILE, Path::new("/file"), service, address);
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.get(member, &Environment::of([("VARIABLE", "of the environment")]), "VARIABLE"))
    }

    #[test]
    fn the_longest_matching_prefix_counts() {
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(find("gs", "gs://models/a", "file"), some("/models.json"));
        assert_eq!(find("gs", "gs://other", "file"), some("/default.json"));
        assert_eq!(find("s3", "s3://models/a", "key_id"), some("A"));
        assert_eq!(find("s3", "s3://models/a", "region"), Ok(None), "empty counts as none");
        assert_eq!(find("s3", "s3://models/private/a", "key_id"), Ok(None));
        let text = "Cannot match credential for path  s3://other";
        assert_eq!(find("s3", "s3://other", "key_id"), Err(text.to_owned()));
        assert!(find("as", "as://a/b", "account_str").is_err());
    }

    #[test]
    fn without_a_file_the_environment_counts() {
        let environment = Environment::of([("AWS_ACCESS_KEY_ID", "E")]);
        let found = Credential::find(&environment, "s3", "s3://a").expect("none");
        assert_eq!(found.get("key_id", &environment, "AWS_ACCESS_KEY_ID").as_deref(), Some("E"));
    }

    #[test]
    fn an_invalid_file_is_reported_without_its_content() {
        let given = r#"{"s3": SECRET}"#;
        let error =
            Credential::of_text(given, Path::new("/file"), "s3", "s3://a").expect_err("no JSON");
        let text = error.to_string();
        assert!(
            text.contains("'/file' (TRITON_CLOUD_CREDENTIAL_PATH)") && !text.contains("SECRET"),
            "{text}"
        );
        let environment = Environment::of([(VARIABLE, "/nonexistent")]);
        assert!(Credential::find(&environment, "s3", "s3://a").is_err());
    }
}

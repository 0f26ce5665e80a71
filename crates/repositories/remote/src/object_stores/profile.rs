//! Reads the profiles of AWS: `~/.aws/credentials` and `~/.aws/config`.

use std::{collections::HashMap, io, path::PathBuf};

use galatea_types::Environment;

use crate::error::{FailureKind, RemoteError};

/// Most bytes of a file of profiles.
const MOST_BYTES: u64 = 1 << 20;

/// Settings for credentials that need another program, a browser or another account.
const UNSUPPORTED: [&str; 6] = [
    "credential_process",
    "sso_session",
    "sso_start_url",
    "source_profile",
    "credential_source",
    "login_session",
];

/// The settings of one profile. Those of the credentials file override those of the config file.
pub struct Profile {
    name: String,
    settings: HashMap<String, String>,
}

impl Profile {
    /// Finds a profile. `name`: the requested one. Without a name it is the default profile, if there is one.
    pub fn find(
        environment: &Environment,
        name: Option<&str>,
    ) -> Result<Option<Self>, RemoteError> {
        let wanted = name.unwrap_or("default");
        let mut settings = HashMap::new();
        let mut is_there = false;
        for (file, is_config) in files(environment) {
            let text = match galatea_regular_files::read_text(&file, MOST_BYTES) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let text =
                        format!("the profiles in '{}' cannot be read: {error}", file.display());
                    return Err(RemoteError::new(FailureKind::Denied, text));
                }
            };
            is_there |= add_section(&text, wanted, is_config, &mut settings);
        }
        match (is_there, name) {
            (true, _) => Ok(Some(Self { name: wanted.to_owned(), settings })),
            (false, None) => Ok(None),
            (false, Some(name)) => {
                let text = format!(
                    "there is no AWS profile '{name}' in ~/.aws/credentials or ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, \
                     AWS_CONFIG_FILE)"
                );
                Err(RemoteError::new(FailureKind::Denied, text))
            }
        }
    }

    pub fn get(&self, setting: &str) -> Option<&str> {
        self.settings.get(setting).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Checks, for a profile without keys, that it does not need an unsupported way to get them.
    pub fn check_supported(&self) -> Result<(), RemoteError> {
        let Some(way) = UNSUPPORTED.iter().find(|way| self.get(way).is_some()) else {
            return Ok(());
        };
        let text = format!(
            "the AWS profile '{}' gets its keys by {way}, which is not supported: put the keys into the environment \
             (`aws configure export-credentials --profile {} --format env` prints them), or use a role of the machine",
            self.name, self.name
        );
        Err(RemoteError::new(FailureKind::Denied, text))
    }
}

/// Lists the files by precedence. The flag is true if sections are named as in the config file.
fn files(environment: &Environment) -> Vec<(PathBuf, bool)> {
    let home = environment.path("HOME").map(|home| home.join(".aws"));
    let file =
        |variable, name| environment.path(variable).or_else(|| Some(home.as_ref()?.join(name)));
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").map(|path| (path, false));
    let config = file("AWS_CONFIG_FILE", "config").map(|path| (path, true));
    credentials.into_iter().chain(config).collect()
}

/// Reads a section. Returns true if it exists.
fn add_section(
    text: &str,
    wanted: &str,
    is_config: bool,
    settings: &mut HashMap<String, String>,
) -> bool {
    let (mut is_in, mut is_there) = (false, false);
    for line in text.lines() {
        // Indented lines belong to the setting above.
        if line.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(name) =
            line.trim_end().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
        {
            let name = name.trim();
            let plain = name.strip_prefix("profile ").filter(|_| is_config).map_or(name, str::trim);
            is_in = plain == wanted;
            is_there |= is_in;
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_in) {
            let value = value.split_once(" #").map_or(value, |(value, _)| value);
            settings
                .entry(key.trim().to_ascii_lowercase())
                .or_insert_with(|| value.trim().to_owned());
        }
    }
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(home: &tempfile::TempDir) -> Environment {
        Environment::of([("HOME", home.path().as_os_str().to_owned())])
    }

    fn written() -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("folder");
        let aws = home.path().join(".aws");
        std::fs::create_dir(&aws).expect("made");
        let credentials = "[default]\naws_access_key_id = A\naws_secret_access_key=B # mine\n\n[other]\naws_access_key_id=C\n";
        let config = "[default]\nregion = eu-west-1\naws_access_key_id = not this\ns3 =\n  endpoint_url = nested\n\
                      [profile other]\nregion=us-west-2\n[profile sso]\nsso_session = x\n";
        std::fs::write(aws.join("credentials"), credentials).expect("written");
        std::fs::write(aws.join("config"), config).expect("written");
        home
    }

    #[test]
    fn both_files_form_a_profile() {
        let home = written();
        let find =
            |name| Profile::find(&environment(&home), name).expect("readable").expect("there");
        let default = find(None);
        assert_eq!(default.get("aws_access_key_id"), Some("A"));
        assert_eq!(default.get("aws_secret_access_key"), Some("B"));
        assert_eq!((default.get("region"), default.get("endpoint_url")), (Some("eu-west-1"), None));
        let other = find(Some("other"));
        assert_eq!(
            (other.get("aws_access_key_id"), other.get("region")),
            (Some("C"), Some("us-west-2"))
        );
        assert!(other.check_supported().is_ok());
        let text = find(Some("sso")).check_supported().expect_err("refused").to_string();
        assert!(text.contains("gets its keys by sso_session, which is not supported"), "{text}");
    }

    #[test]
    fn a_missing_profile_is_an_error_only_if_it_was_named() {
        let empty = tempfile::tempdir().expect("folder");
        assert!(Profile::find(&environment(&empty), None).expect("fine").is_none());
        let text =
            Profile::find(&environment(&empty), Some("x")).err().expect("refused").to_string();
        assert!(text.starts_with("there is no AWS profile 'x'"), "{text}");
    }
}

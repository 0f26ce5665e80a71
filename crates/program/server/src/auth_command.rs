//! `galatea auth`: makes API keys. A key is shown once; a policy has only its SHA-256.

use std::process::ExitCode;

use galatea_access::{ApiKey, Role};
use ring::rand::{SecureRandom, SystemRandom};

use crate::terminal::{print, refuse};

const USAGE: &str = "\
Usage: galatea auth key <name> [role...]

Makes an API key for a client that the server's log and its errors call <name>. The key is printed once, with the
lines for the file of `galatea serve --auth-policy=<file>`, which has only its hash. Roles: infer, read, control,
admin; without any: infer and read.

Clients send the key as `Authorization: Bearer <key>` or `X-API-Key: <key>`, over gRPC as metadata of these names.
`galatea models`, `infer`, `top` and `perf` take it from the variable GALATEA_API_KEY.
";

/// The words after `galatea auth`, for completions.
pub const WORDS: &[&str] = &["key", "--help"];

pub fn run(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let made = match words[..] {
        ["-h" | "--help"] | ["key", "-h" | "--help"] => Ok(USAGE.to_owned()),
        ["key", name, ref roles @ ..] => new_key(name, roles),
        ["key"] => Err("the name of the client is missing".to_owned()),
        [] => Err("a command is missing: 'key' is expected".to_owned()),
        [other, ..] => Err(format!("'auth' has no '{other}': 'key' is expected")),
    };
    match made {
        Ok(text) => print(&text),
        Err(error) => {
            refuse(error, "galatea auth key <name> [role...]; `galatea auth --help` says more")
        }
    }
}

fn new_key(name: &str, roles: &[&str]) -> Result<String, String> {
    if name.is_empty() || name.starts_with('-') || name.chars().any(char::is_control) {
        return Err("the name of a client is expected behind 'key'".to_owned());
    }
    let roles = if roles.is_empty() { &["infer", "read"] } else { roles };
    if let Some(role) = roles.iter().find(|role| Role::named(role).is_none()) {
        return Err(format!("there is no role '{role}'; roles are infer, read, control, admin"));
    }
    let mut random = [0; 32];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(text_of(name, roles, &ApiKey::from_random(&random)))
}

fn text_of(name: &str, roles: &[&str], key: &ApiKey) -> String {
    let roles: Vec<String> = roles.iter().map(|role| format!("\"{role}\"")).collect();
    // JSON and TOML have the same escapes.
    let quoted = serde_json::Value::from(name).to_string();
    format!(
        "# The key of {name}, which is shown only now:\n{key}\n\n# For the file of --auth-policy:\n\
         [[keys]]\nname = {quoted}\nsha256 = \"{digest}\"\nroles = [{roles}]\n",
        key = key.as_str(),
        digest = key.digest(),
        roles = roles.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use galatea_access::{Action, Credentials, Gate, KeySet, Policy};

    use super::*;

    #[test]
    fn the_printed_policy_accepts_the_printed_key() {
        let text = new_key("a \"b\" \\c", &["infer"]).expect("made");
        let key = text.lines().nth(1).expect("a key").to_owned();
        let policy: String =
            text.lines().filter(|line| **line != key).map(|line| format!("{line}\n")).collect();
        assert!(!policy.contains(&key));
        let gate = Gate::new(Policy::parse("p", &policy).expect("good"), KeySet::default());
        let credentials = Credentials { api_key: Some(key.as_bytes()), ..Credentials::default() };
        let grantee = gate.admit(&credentials, &Action::Infer("m"), 1).expect("known");
        assert_eq!(grantee.expect("asked").identity().name(), "a \"b\" \\c");
        assert!(gate.admit(&credentials, &Action::Read("m"), 1).is_err());
        assert_ne!(new_key("a", &[]), new_key("a", &[]));
    }

    #[test]
    fn roles_and_names_are_checked() {
        assert!(new_key("a", &["raed"]).expect_err("no role").contains("'raed'"));
        for name in ["", "--x", "a\nb"] {
            assert!(new_key(name, &[]).is_err(), "{name}");
        }
    }
}

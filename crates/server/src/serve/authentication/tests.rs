//! Changes of the policy's file while a server serves.

use std::fs;

use galatea_access::{Action, Credentials};

use super::*;

const POLICY: &str = "[[keys]]\nname = \"a\"\nroles = \"read\"\nsha256 = \"";

fn policy_of(key: &str) -> String {
    format!("{POLICY}{}\"\n", galatea_access::Digest::of(key.as_bytes()))
}

fn knows(work: &AppliedPolicy, key: &str) -> bool {
    let credentials = Credentials { api_key: Some(key.as_bytes()), ..Credentials::default() };
    work.gate.admit(&credentials, &Action::ReadEverything, 1).is_ok()
}

#[test]
fn a_changed_policy_is_taken_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    fs::write(&path, policy_of("old")).expect("written");
    let mut work = AppliedPolicy::read(&path).expect("good");
    assert!(knows(&work, "old") && !knows(&work, "new"));
    for broken in ["[[keys", "[jwt]\nissuer = 1\n", ""] {
        let text = format!("{}{broken}", policy_of("new"));
        fs::write(&path, if broken.is_empty() { text.clone() } else { text }).expect("written");
        work.look_at_policy();
        assert!(knows(&work, "old"), "it may still be being written");
        work.look_at_policy();
        assert_eq!(knows(&work, "new"), broken.is_empty(), "{broken}");
        assert_eq!(knows(&work, "old"), !broken.is_empty(), "{broken}");
    }
    fs::remove_file(&path).expect("removed");
    work.look_at_policy();
    work.look_at_policy();
    assert!(knows(&work, "new"), "a file that is gone changes nothing");
}

#[test]
fn keys_that_cannot_be_read_are_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    let jwt = "[jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"keys.json\"\n";
    fs::write(&path, jwt).expect("written");
    let policy = read_policy(&path).expect("good");
    let error = Keys::of(&policy, &path).first().expect_err("no file").to_string();
    assert!(error.contains("keys.json"), "{error}");
    fs::write(folder.path().join("keys.json"), "{\"keys\": []}").expect("written");
    let error = format!("{:#}", Keys::of(&policy, &path).first().expect_err("no keys"));
    assert!(error.contains("none of its 0 keys"), "{error}");
}

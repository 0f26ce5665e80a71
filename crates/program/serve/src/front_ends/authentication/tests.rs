//! Changes of the policy's file while a server serves.

use std::{fs, process::Command};

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
fn a_changed_policy_is_applied_unless_it_is_invalid() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    fs::write(&path, policy_of("old")).expect("written");
    let mut work = AppliedPolicy::read(&path, &Environment::default()).expect("good");
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
fn a_reload_reads_the_policy_at_once_and_the_keys_at_the_next_poll() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    let jwt = "[jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"keys.json\"\n";
    let keys = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    fs::write(folder.path().join("keys.json"), keys).expect("written");
    fs::write(&path, format!("{jwt}{}", policy_of("old"))).expect("written");
    let mut work = AppliedPolicy::read(&path, &Environment::default()).expect("good");
    fs::write(&path, format!("{jwt}{}", policy_of("new"))).expect("written");
    work.reload();
    assert!(knows(&work, "new") && !knows(&work, "old"), "it waits for no second look");
    assert!(
        work.keys.look(Instant::now(), 0, &Environment::default()).is_some(),
        "the keys are read anew"
    );
    assert!(work.keys.look(Instant::now(), 0, &Environment::default()).is_none(), "and once");
}

#[test]
fn a_policy_replaced_by_a_pipe_or_folder_is_ignored_and_still_watched() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    fs::write(&path, policy_of("old")).expect("written");
    let mut work = AppliedPolicy::read(&path, &Environment::default()).expect("good");
    let look_twice = |work: &mut AppliedPolicy| {
        work.look_at_policy();
        work.look_at_policy();
    };
    fs::remove_file(&path).expect("removed");
    assert!(Command::new("mkfifo").arg(&path).status().expect("started").success());
    look_twice(&mut work);
    assert!(knows(&work, "old"), "a pipe");
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    look_twice(&mut work);
    assert!(knows(&work, "old"), "a folder");
    fs::remove_dir(&path).expect("removed");
    fs::write(&path, policy_of("new")).expect("written");
    look_twice(&mut work);
    assert!(knows(&work, "new") && !knows(&work, "old"), "a key that was revoked is not known");
}

#[test]
fn unreadable_keys_are_an_error_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    let jwt = "[jwt]\nissuer = \"i\"\naudience = \"a\"\njwks_file = \"keys.json\"\n";
    fs::write(&path, jwt).expect("written");
    let policy = read_policy(&path).expect("good");
    let error = KeyOrigin::of(&policy, &path).first().expect_err("no file").to_string();
    assert!(error.contains("keys.json"), "{error}");
    fs::write(folder.path().join("keys.json"), "{\"keys\": []}").expect("written");
    let error = format!("{:#}", KeyOrigin::of(&policy, &path).first().expect_err("no keys"));
    assert!(error.contains("none of its 0 keys"), "{error}");
}

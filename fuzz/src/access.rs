//! Policies of who may do what, and what clients send to prove who they are.

use std::sync::LazyLock;

use galatea_access::{Action, Credentials, Gate, KeySet, Policy};

const POLICY: &str = r#"
[jwt]
issuer = "i"
audience = "a"
jwks_file = "f"

[[keys]]
name = "k"
sha256 = "0000000000000000000000000000000000000000000000000000000000000001"
roles = "read"

[[certificates]]
subject = "CN=*,O=E"
"#;
const KEYS: &[u8] = br#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    Gate::new(Policy::parse("p", POLICY).expect("good"), KeySet::parse(KEYS).expect("good"))
});

/// The text of a policy. A mistake is told on one line, at a place in the text.
pub fn policy(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Policy::parse("p", text) {
        Ok(policy) => drop(policy.summary()),
        Err(error) => {
            assert!(error.line <= text.lines().count().max(1) + 1, "{error}");
            assert!(!error.text.is_empty() && !error.advice.is_empty(), "{error}");
        }
    }
}

/// A set of public keys.
pub fn key_set(bytes: &[u8]) {
    if let Ok(keys) = KeySet::parse(bytes) {
        assert!(!keys.is_empty());
    }
}

/// A credential in each place that one can be in. Nobody can guess the key, or sign a token.
pub fn credential(bytes: &[u8]) {
    let bearer = [b"Bearer ", bytes].concat();
    let subject = std::str::from_utf8(bytes).unwrap_or_default();
    let none = Credentials::default();
    for credentials in [
        Credentials { authorization: Some(bytes), ..none },
        Credentials { authorization: Some(&bearer), ..none },
        Credentials { api_key: Some(bytes), ..none },
    ] {
        let admitted = GATE.admit(&credentials, &Action::ReadSomething, 1_800_000_000);
        assert!(admitted.is_err());
    }
    let certificate = Credentials { certificate: Some(subject), ..none };
    let known = GATE.admit(&certificate, &Action::ServerMetadata, 1);
    assert_eq!(
        known.is_ok(),
        subject.starts_with("CN=")
            && subject.ends_with(",O=E")
            && subject.matches(',').count() == 1
    );
}

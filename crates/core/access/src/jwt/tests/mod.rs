//! Tokens that are good, and all the ways in which one is not.

pub(crate) mod issuer;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};

use self::issuer::{Issuer, JWT, NOW, with};
use super::{KeySet, KeySetError};
use crate::{action::Action, grantee::Grantee, policy::Policy, refusal::AuthFailure};

struct Verifier {
    policy: Policy,
    keys: KeySet,
}

impl Verifier {
    fn of(issuer: &Issuer, policy: &str) -> Self {
        let policy = Policy::parse("p", &format!("{JWT}{policy}")).expect("good");
        let keys = KeySet::parse(issuer.key_set().to_string().as_bytes()).expect("good");
        Self { policy, keys }
    }

    fn verify_at(&self, token: &str, now: u64) -> Result<Grantee, AuthFailure> {
        self.policy.jwt().expect("rules").verify(&self.policy, &self.keys, token.as_bytes(), now)
    }

    fn verify(&self, token: &str) -> Result<Grantee, AuthFailure> {
        self.verify_at(token, NOW)
    }

    #[track_caller]
    fn refuses(&self, token: &str, expected: &str) {
        match self.verify(token) {
            Ok(grantee) => panic!("{:?} was let in", grantee.identity()),
            Err(AuthFailure::InvalidToken(text)) => assert_eq!(text, expected),
            Err(other) => assert_eq!(other.reason(), expected),
        }
    }
}

#[test]
fn a_valid_token_proves_identity_and_roles() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "models = [\"a*\"]\n");
    for header in [
        json!({"alg": "EdDSA", "kid": "ed"}),
        json!({"alg": "ES256", "kid": "es"}),
        json!({"alg": "EdDSA"}),
    ] {
        let token = issuer.token(&header, &with(&json!({})));
        let grantee = verifier.verify(&token).expect("good");
        assert_eq!(grantee.identity().name(), "ann");
        assert!(grantee.may(&Action::Infer("a1")) && !grantee.may(&Action::Infer("b")));
        assert!(!grantee.may(&Action::Read("a1")));
    }
    for audience in [json!("galatea"), json!(["other", "galatea"])] {
        assert!(verifier.verify(&issuer.good(&json!({"aud": audience}))).is_ok());
    }
}

#[test]
fn groups_of_a_token_grant_the_roles_of_the_policy() {
    let issuer = Issuer::new();
    let policy = "[[grants]]\ngroup = \"ml-*\"\nroles = \"read\"\nmodels = \"b\"\n[[grants]]\nidentity = \"ann\"\nroles = \"control\"\nmodels = \"c\"\n";
    let verifier = Verifier::of(&issuer, policy);
    for roles in [json!(["ml-team", 7, "other"]), json!("other ml-team")] {
        let grantee = verifier.verify(&issuer.good(&json!({"roles": roles}))).expect("good");
        assert!(grantee.may(&Action::Read("b")) && grantee.may(&Action::Control("c")));
        assert!(!grantee.may(&Action::Read("c")) && !grantee.may(&Action::InferSomething));
    }
    let other = issuer.good(&json!({"sub": "bob", "roles": null}));
    assert!(!verifier.verify(&other).expect("good").may(&Action::ControlSomething));
}

#[test]
fn a_token_is_refused_for_every_single_defect() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "");
    let no_time = "a time in the token is not a number";
    for (claims, expected) in [
        (json!({"iss": "https://other"}), "the token is from another issuer"),
        (json!({"iss": null}), "the token has no 'iss'"),
        (json!({"iss": ["https://issuer"]}), "the 'iss' of the token is not a text"),
        (
            json!({"iss": ["https://other", "https://issuer"]}),
            "the 'iss' of the token is not a text",
        ),
        (json!({"aud": "other"}), "the token is for another audience"),
        (json!({"aud": null}), "the token has no 'aud'"),
        (json!({"exp": null}), "the token has no 'exp'"),
        (json!({"exp": "soon"}), "the token has no 'exp'"),
        (json!({"exp": NOW - 31}), "expired"),
        (json!({"exp": -1}), "the token has no 'exp'"),
        (json!({"nbf": "soon"}), no_time),
        (json!({"nbf": NOW + 31}), "the token is not valid yet"),
    ] {
        let token = issuer.good(&claims);
        let refused = verifier.verify(&token).expect_err("bad");
        let text = match refused {
            AuthFailure::InvalidToken(text) => text,
            other => other.reason(),
        };
        assert_eq!(text, expected, "{claims}");
    }
    for subject in [json!(null), json!(""), json!(7), json!("a\nb"), json!("x".repeat(300))] {
        let text = "the token names no identity: the claim for it is missing or not a name";
        verifier.refuses(&issuer.good(&json!({"sub": subject})), text);
    }
}

#[test]
fn expiry_allows_for_the_clock_leeway() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "");
    let token = issuer.good(&json!({"exp": NOW, "nbf": NOW - 10}));
    for (at, is_good) in [(NOW - 41, false), (NOW - 40, true), (NOW + 29, true), (NOW + 30, false)]
    {
        assert_eq!(verifier.verify_at(&token, at).is_ok(), is_good, "{at}");
    }
    let grantee = verifier.verify(&token).expect("good");
    assert!(!grantee.has_expired(NOW + 29) && grantee.has_expired(NOW + 30));
    let fraction = issuer.good(&json!({"exp": NOW as f64 + 0.5}));
    assert!(verifier.verify(&fraction).is_ok());
}

#[test]
fn the_key_and_not_the_token_decides_the_algorithm() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "");
    let claims = with(&json!({}));
    let other = "the algorithm of the token is not that of its key";
    verifier.refuses(&issuer.token(&json!({"alg": "EdDSA", "kid": "es"}), &claims), other);
    verifier.refuses(&issuer.token(&json!({"alg": "ES256", "kid": "ed"}), &claims), other);
    verifier.refuses(&issuer.token(&json!({"alg": "RS256", "kid": "ed"}), &claims), other);
    verifier.refuses(
        &issuer.token(&json!({"alg": "RS256", "kid": "enc"}), &claims),
        "unknown_signing_key",
    );
    for algorithm in ["HS256", "HS512", "PS256", "RS512", "ES384"] {
        let token = issuer.token(&json!({"alg": algorithm, "kid": "ed"}), &claims);
        verifier.refuses(&token, "tokens signed by this algorithm are not accepted");
    }
    for algorithm in ["none", "None", "", "eddsa"] {
        let token = issuer.token(&json!({"alg": algorithm, "kid": "ed"}), &claims);
        verifier.refuses(&token, "the token could not be read");
    }
    // The public key as the secret of an HMAC: the classic one.
    let message = issuer.token(&json!({"alg": "HS256", "kid": "secret"}), &claims);
    verifier.refuses(&message, "tokens signed by this algorithm are not accepted");
    verifier.refuses(
        &issuer.token(&json!({"alg": "EdDSA", "kid": "no"}), &claims),
        "unknown_signing_key",
    );
    let critical = json!({"alg": "EdDSA", "kid": "ed", "crit": ["x"], "x": 1});
    verifier.refuses(&issuer.token(&critical, &claims), "the token has critical extensions");
}

#[test]
fn only_algorithms_of_the_policy_are_accepted() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "algorithms = [\"ES256\"]\n");
    let token = issuer.token(&json!({"alg": "ES256", "kid": "es"}), &with(&json!({})));
    assert!(verifier.verify(&token).is_ok());
    let text = "tokens signed by this algorithm are not accepted";
    verifier.refuses(&issuer.good(&json!({})), text);
}

#[test]
fn a_modified_token_is_refused() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "");
    let token = issuer.good(&json!({}));
    let parts: Vec<&str> = token.split('.').collect();
    let claims = BASE64.encode(with(&json!({"sub": "root"})).to_string());
    let wrong = "the signature of the token is wrong";
    verifier.refuses(&format!("{}.{claims}.{}", parts[0], parts[2]), wrong);
    verifier.refuses(&Issuer::new().good(&json!({})), wrong);
    verifier.refuses(&format!("{}.{}.", parts[0], parts[1]), wrong);
    for end in 0..token.len() {
        assert!(verifier.verify(&token[..end]).is_err(), "{end} bytes of it");
    }
}

#[test]
fn garbage_of_every_size_is_refused() {
    let issuer = Issuer::new();
    let verifier = Verifier::of(&issuer, "");
    for size in [0, 1, 2, 10, 100, 1000, 8000, 1 << 20] {
        for byte in ["a", ".", "{", "\0", "é", "="] {
            assert!(verifier.verify(&byte.repeat(size)).is_err());
            assert!(verifier.verify(&format!("{0}.{0}.{0}", byte.repeat(size))).is_err());
        }
    }
    let deep = BASE64.encode(format!("{}{}", "[".repeat(5000), "]".repeat(5000)));
    assert!(verifier.verify(&format!("{deep}.{deep}.")).is_err());
}

#[test]
fn key_sets_are_bounded_and_errors_name_the_cause() {
    let parse = |text: &str| KeySet::parse(text.as_bytes()).expect_err("bad");
    assert!(matches!(parse("x"), KeySetError::Malformed(_)));
    assert!(matches!(parse("{\"keys\": {}}"), KeySetError::Malformed(_)));
    assert_eq!(parse("{\"keys\": [1, {}]}"), KeySetError::NoUsableKey(2));
    assert_eq!(parse(&" ".repeat(super::MAX_KEY_SET + 1)), KeySetError::TooLong);
    let many = json!({"keys": vec![Value::Null; 300]}).to_string();
    assert_eq!(parse(&many), KeySetError::TooMany(300));
    let issuer = Issuer::new();
    let keys = KeySet::parse(issuer.key_set().to_string().as_bytes()).expect("good");
    assert_eq!(keys.len(), 2, "{keys:?}");
}

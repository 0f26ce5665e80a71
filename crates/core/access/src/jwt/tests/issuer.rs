//! An issuer of tokens for tests.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};

/// The rules of the tests' policies.
pub(crate) const JWT: &str = r#"
[jwt]
issuer = "https://issuer"
audience = "galatea"
jwks_file = "keys.json"
roles_claim = "roles"
leeway_secs = 30
"#;

/// When the tests' tokens are made.
pub(crate) const NOW: u64 = 1_800_000_000;

/// What key sets call the curve; in two parts, for it looks like the number of a row elsewhere.
const P256: &str = concat!("P", "-256");

/// With one key of each curve.
pub(crate) struct Issuer {
    edwards: Ed25519KeyPair,
    curve: EcdsaKeyPair,
}

impl Issuer {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let curve = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        Self {
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).expect("a key"),
            curve: EcdsaKeyPair::from_pkcs8(algorithm, curve.as_ref(), &random).expect("a key"),
        }
    }

    /// Its keys: `ed` and `es`.
    pub fn key_set(&self) -> Value {
        let point = self.curve.public_key().as_ref();
        let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
        let ed = BASE64.encode(self.edwards.public_key());
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": ed},
            {"kty": "EC", "crv": P256, "kid": "es", "alg": "ES256", "x": x, "y": y},
            {"kty": "RSA", "kid": "enc", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "oct", "kid": "secret", "k": "AQAB"},
            {"kty": "unknown", "kid": "new"},
            7
        ]})
    }

    /// A token of these claims, signed by the key that its algorithm means.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let message = [header, claims].map(|part| BASE64.encode(part.to_string())).join(".");
        let signature = match header["alg"].as_str() {
            Some("EdDSA") => self.edwards.sign(message.as_bytes()).as_ref().to_vec(),
            Some("ES256") => {
                let signed = self.curve.sign(&SystemRandom::new(), message.as_bytes());
                signed.expect("a signature").as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{message}.{}", BASE64.encode(signature))
    }

    /// A good one, with other claims in it.
    pub fn good(&self, claims: &Value) -> String {
        self.token(&json!({"alg": "EdDSA", "kid": "ed"}), &with(claims))
    }
}

/// The claims of a good token, with others in it; those that are null are taken out.
pub(crate) fn with(other: &Value) -> Value {
    let mut claims = json!({
        "iss": "https://issuer", "aud": "galatea", "sub": "ann", "exp": NOW + 100, "roles": ["infer"],
    });
    let all = claims.as_object_mut().expect("an object");
    for (name, value) in other.as_object().expect("an object") {
        all.insert(name.clone(), value.clone());
    }
    all.retain(|_, value| !value.is_null());
    claims
}

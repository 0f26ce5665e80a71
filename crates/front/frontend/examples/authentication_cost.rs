//! What it costs a request to be let in: `cargo run --release -p galatea-frontend --example authentication_cost`.

#![expect(clippy::disallowed_methods, reason = "it measures times")]
// A measurement that cannot be made ends the program.
#![allow(clippy::expect_used)]

use std::{hint::black_box, iter, sync::Arc, time::Instant};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use galatea_access::{Digest, Gate, KeySet, Policy};
use galatea_frontend::{Action, Authentication, Client, Peer};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};

const CALLS: u32 = 200_000;

fn main() {
    let key = signing_key();
    let token = token(&key);
    let gate = gate(&key);
    let on = Authentication::by(gate.clone());
    let off = Authentication::default();
    println!("a token of {} bytes, signed by Ed25519; nanoseconds a request", token.len());
    let line = |what: &str, nanoseconds: f64| println!("{what:<28} {nanoseconds:>9.1}");
    line("without a policy", measure(CALLS, || admit(&off, &token)));
    line("an API key", measure(CALLS, || admit(&on, "key")));
    line("a token seen before", measure(CALLS, || admit(&on, &token)));
    let first = measure(2_000, || {
        // Nothing that was proved to the keys before holds.
        gate.replace_keys(key_set(&key));
        admit(&on, &token)
    });
    line("a token not seen before", first);
}

fn admit(authentication: &Authentication, secret: &str) -> bool {
    let client = Client { peer: Peer::Unix, certificate: None };
    let header = |name| iter::once(secret.as_bytes()).filter(move |_| name == "x-api-key");
    authentication.admit(&client, header, || Action::Infer(black_box("simple"))).is_ok()
}

fn measure(calls: u32, call: impl Fn() -> bool) -> f64 {
    assert!(call(), "let in");
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn signing_key() -> Ed25519KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key")
}

fn key_set(key: &Ed25519KeyPair) -> KeySet {
    let x = BASE64.encode(key.public_key());
    let text =
        format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "{x}"}}]}}"#);
    KeySet::parse(text.as_bytes()).expect("a key set")
}

fn gate(key: &Ed25519KeyPair) -> Arc<Gate> {
    let policy = format!(
        "[jwt]\nissuer = \"https://issuer.example.com/\"\naudience = \"galatea\"\njwks_file = \"f\"\nroles_claim = \"roles\"\n\
         [[keys]]\nname = \"k\"\nsha256 = \"{}\"\nroles = \"infer\"\n",
        Digest::of(b"key")
    );
    Arc::new(Gate::new(Policy::parse("p", &policy).expect("a policy"), key_set(key)))
}

/// About as long as those of usual issuers.
fn token(key: &Ed25519KeyPair) -> String {
    let header = r#"{"alg":"EdDSA","kid":"k","typ":"JWT"}"#;
    let groups: Vec<String> = (0..30).map(|n| format!("\"group-number-{n}\"")).collect();
    let claims = format!(
        r#"{{"iss":"https://issuer.example.com/","aud":"galatea","sub":"somebody","exp":4000000000,"roles":["infer",{}]}}"#,
        groups.join(",")
    );
    let message = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let signature = BASE64.encode(key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

//! What policies say, and how mistakes in them are told.

use super::*;
use crate::role::Role;

const KEY: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn parse(text: &str) -> Policy {
    Policy::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn wrong(text: &str, expected: &str) {
    match Policy::parse("p.toml", text) {
        Ok(policy) => panic!("taken: {policy:?}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

fn key(rest: &str) -> String {
    format!("[[keys]]\nname = \"k\"\nsha256 = \"{KEY}\"\n{rest}")
}

#[test]
fn keys_have_their_own_roles_and_those_of_their_name() {
    let text =
        key("roles = [\"infer\"]\nmodels = [\"a\", \"b*\"]\nexpires = 2027-01-31T12:00:00Z\n");
    let grant = "[[grants]]\nidentity = \"k*\"\nroles = \"read\"\n[[grants]]\nidentity = \"x\"\nroles = \"admin\"\n";
    let policy = parse(&format!("{text}{grant}"));
    let owner = policy.owner_of(&Digest::of(b"abc")).expect("known");
    assert_eq!(owner.identity().name(), "k");
    assert!(owner.has_role(Role::Infer, "b2") && !owner.has_role(Role::Infer, "c"));
    assert!(owner.has_role(Role::Read, "c") && !owner.has_role(Role::Control, "a"));
    assert!(owner.has_expired(1_801_396_800) && !owner.has_expired(1_801_396_799));
    assert!(policy.owner_of(&Digest::of(b"abd")).is_none());
}

#[test]
fn certificates_are_matched_by_subject() {
    let policy = parse(
        "[[certificates]]\nsubject = \"CN=a,O=E\"\nname = \"ann\"\nroles = \"read\"\n[[certificates]]\nsubject = \"CN=*,O=E\"\n\
         [[grants]]\nidentity = \"CN=b,*\"\nroles = \"infer\"\n",
    );
    let ann = policy.of_certificate("CN=a,O=E").expect("known");
    assert_eq!(ann.identity().name(), "ann");
    assert!(ann.has_role(Role::Read, "m"));
    let other = policy.of_certificate("CN=b,O=E").expect("known");
    assert_eq!(other.identity().name(), "CN=b,O=E");
    assert!(other.has_role(Role::Infer, "m") && !other.has_role(Role::Read, "m"));
    assert!(policy.of_certificate("CN=b,O=F").is_none());
}

#[test]
fn health_checks_are_open_unless_the_policy_restricts_them() {
    let all = [Action::Live, Action::ModelReady("m"), Action::Metrics, Action::ServerMetadata];
    let open = |text: &str| all.map(|action| parse(text).is_open(&action));
    assert_eq!(open(""), [true, false, false, false]);
    assert_eq!(open("[open]\n"), [true, false, false, false]);
    assert_eq!(open("[open]\nroutes = []\n"), [false; 4]);
    assert_eq!(
        open("[open]\nroutes = [\"metrics\", \"model-ready\"]\n"),
        [false, true, true, false]
    );
    for action in [Action::Infer("m"), Action::ReadSomething, Action::ControlServer] {
        assert!(!parse("[open]\nroutes = [\"health\"]").is_open(&action));
    }
    assert_eq!(parse("").warnings().len(), 1);
    assert!(parse(&key("")).warnings().is_empty());
}

#[test]
fn a_mistake_is_reported_with_place_and_advice() {
    wrong("a b", "p.toml:1:3: key with no value, expected `=`; the file must be TOML");
    wrong("key = 1", "p.toml:1:1: the policy has no 'key'; did you mean 'keys'?");
    wrong("[keys]\n", "p.toml:1:1: 'keys' must be a list of tables; write [[keys]] before each");
    wrong("jwt = 1", "p.toml:1:7: 'jwt' must be one table; write [jwt]");
    wrong(&key("role = \"read\""), "p.toml:4:1: [[keys]] has no 'role'; did you mean 'roles'?");
    wrong(
        &key("roles = [\"infer\", \"raed\"]"),
        "p.toml:4:19: there is no role 'raed'; did you mean \"read\"?",
    );
    wrong(&key("roles = \"infr\""), "p.toml:4:9: there is no role 'infr'; did you mean \"infer\"?");
    wrong(
        &key("roles = \"superuser\""),
        "p.toml:4:9: there is no role 'superuser'; roles are infer, read, control, admin",
    );
    wrong(
        &key("models = \"a\""),
        "p.toml:4:10: 'models' limits roles to models, but there are no 'roles'; add roles = [\"infer\", \"read\"]",
    );
    wrong(&key("roles = []"), "p.toml:4:9: 'roles' is empty; write roles = [\"infer\", \"read\"]");
    wrong(
        "[[keys]]\nsha256 = \"x\"\n",
        "p.toml:1:1: [[keys]] has no 'name'; add name = \"trainer\"",
    );
    wrong(
        "[[keys]]\nname = \"k\"\nsha256 = \"galatea_secret\"\n",
        "p.toml:3:10: 'sha256' of key 'k' must be 64 hexadecimal digits; put there what `galatea auth key` prints, never the key itself",
    );
    wrong(
        &format!("{}{}", key(""), key("")),
        "p.toml:6:10: the key of 'k' is listed twice; remove one of the two",
    );
    wrong(
        &key("expires = \"soon\""),
        "p.toml:4:11: 'expires' of [[keys]] must be a date, or a time with its offset; write expires = 2027-01-31T12:00:00Z",
    );
    wrong(
        "[open]\nroutes = [\"heath\"]",
        "p.toml:2:11: 'heath' cannot be open; did you mean \"health\"?",
    );
    wrong(
        "[[certificates]]\nsubject = \"ann\"",
        "p.toml:2:11: 'ann' is not the subject of a certificate; write it as openssl x509 -noout -subject -nameopt \
         RFC2253 prints it: CN=...,O=...",
    );
    wrong(
        "[[grants]]\nroles = \"read\"",
        "p.toml:1:1: [[grants]] needs one of 'identity' and 'group'; write identity = \"*\" for everyone",
    );
    wrong(
        "[[grants]]\nidentity = \"a\"",
        "p.toml:1:1: [[grants]] has no 'roles'; add roles = [\"infer\", \"read\"]",
    );
    wrong(
        "[[grants]]\ngroup = \"a\"\nroles = \"read\"",
        "p.toml:2:9: no token can name a group; say in [jwt] which claim does: roles_claim = \"groups\"",
    );
}

#[test]
fn incomplete_or_unsafe_token_rules_are_refused() {
    let jwt = |rest: &str| format!("[jwt]\nissuer = \"i\"\n{rest}");
    wrong(
        "[jwt]\n",
        "p.toml:1:1: [jwt] has no 'issuer'; add issuer = \"https://login.example.com/\"",
    );
    wrong(
        &jwt(""),
        "p.toml:1:1: [jwt] has no 'audience': tokens for other services would be accepted; add audience = \"galatea\"",
    );
    let with_audience = |rest: &str| jwt(&format!("audience = [\"a\", \"b\"]\n{rest}"));
    let file = |rest: &str| with_audience(&format!("jwks_file = \"f\"\n{rest}"));
    wrong(
        &with_audience(""),
        "p.toml:1:1: [jwt] needs one of 'jwks_file' and 'jwks_url': the keys that sign tokens; add jwks_url = \"https://...",
    );
    wrong(
        &with_audience("jwks_url = \"http://issuer/\""),
        "p.toml:4:12: 'jwks_url' must be https: whoever can answer in its place could sign tokens; http is accepted \
         on this machine only (http://127.0.0.1:...)",
    );
    wrong(
        &file("algorithms = [\"HS256\"]"),
        "p.toml:5:15: tokens signed by 'HS256' are not accepted; algorithms are RS256, ES256, EdDSA",
    );
    wrong(
        &file("leeway_secs = 6000"),
        "p.toml:5:15: 'leeway_secs' of [jwt] must be a number from 0 to 600; write leeway_secs = 60",
    );
    let policy = parse(&file("leeway_secs = 0\n"));
    let rules = policy.jwt().expect("rules");
    assert_eq!(
        (rules.leeway, rules.identity_claim.as_str(), rules.algorithms.len()),
        (0, "sub", 3)
    );
    assert_eq!(rules.audience, ["a", "b"]);
}

#[test]
fn a_policy_file_is_bounded_but_may_have_many_keys() {
    assert!(Policy::parse("p", &"#".repeat(MAX_POLICY + 1)).is_err());
    let keys: String = (0..10_000)
        .map(|n: u32| {
            format!("[[keys]]\nname = \"k{n}\"\nsha256 = \"{}\"\n", Digest::of(&n.to_le_bytes()))
        })
        .collect();
    assert_eq!(parse(&keys).keys.len(), 10_000);
}

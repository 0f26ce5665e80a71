//! Holds the current policy, which every request asks and which may be replaced at any time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use arc_swap::ArcSwap;
use galatea_types::Identity;

use crate::{
    action::Action,
    credentials::{Credentials, SentCredential},
    digest::Digest,
    grantee::{Grantee, IdentityProof},
    jwt::{Cache, KeySet},
    policy::Policy,
    refusal::{AccessError, AuthFailure},
};

/// Decides whether a client may do an action.
#[derive(Debug)]
pub struct Gate {
    state: ArcSwap<State>,
    failures: [AtomicU64; AuthFailure::REASONS.len()],
    /// Tokens signed by an unknown key: a reason to look for new keys.
    unknown_keys: AtomicU64,
}

/// The state that is replaced as a whole. Results of an older policy or older keys are dropped with it.
#[derive(Debug)]
struct State {
    /// The number of the state. It grows with each change; the first is 1.
    generation: u64,
    policy: Arc<Policy>,
    keys: Arc<KeySet>,
    of_tokens: Cache,
    of_certificates: Cache,
}

impl State {
    fn new(generation: u64, policy: Arc<Policy>, keys: Arc<KeySet>) -> Arc<Self> {
        let (of_tokens, of_certificates) = Default::default();
        Arc::new(Self { generation, policy, keys, of_tokens, of_certificates })
    }

    /// Returns a grantee of an earlier state as this state knows it. It does not check a token's signature again: the issuer's
    /// signature stays valid until the token expires.
    fn renewed(&self, grantee: &Arc<Grantee>, now: u64) -> Result<Arc<Grantee>, AuthFailure> {
        match &grantee.proof {
            IdentityProof::Key(digest) => {
                self.policy.owner_of(digest).cloned().ok_or(AuthFailure::UnknownKey)
            }
            IdentityProof::None => self.policy.anybody.clone().ok_or(AuthFailure::Missing),
            IdentityProof::Certificate(subject) => self.of_certificate(subject, now),
            IdentityProof::Token(groups) => {
                let rules = self.policy.jwt().ok_or(AuthFailure::UnknownKey)?;
                let identity = Identity::clone(grantee.identity());
                let renewed =
                    rules.grantee(&self.policy, identity, groups.clone(), grantee.expires);
                Ok(Arc::new(renewed))
            }
        }
    }

    fn identify(
        &self,
        credentials: &Credentials<'_>,
        now: u64,
    ) -> Result<Arc<Grantee>, AuthFailure> {
        if let Some(anybody) = &self.policy.anybody {
            // There is nothing to compare a credential with.
            return Ok(anybody.clone());
        }
        let grantee = match credentials.sent()? {
            SentCredential::Secret(secret) => self.owner_of(&secret, now)?,
            SentCredential::Certificate(subject) => self.of_certificate(subject, now)?,
        };
        if grantee.has_expired(now) {
            return Err(AuthFailure::Expired);
        }
        Ok(grantee)
    }

    fn owner_of(&self, secret: &[u8], now: u64) -> Result<Arc<Grantee>, AuthFailure> {
        let digest = Digest::of(secret);
        if let Some(grantee) = self.policy.owner_of(&digest) {
            return Ok(grantee.clone());
        }
        let is_token = secret.iter().filter(|&&byte| byte == b'.').count() == 2;
        let rules = self.policy.jwt().filter(|_| is_token).ok_or(AuthFailure::UnknownKey)?;
        if let Some(grantee) = self.of_tokens.get(&digest) {
            return Ok(grantee);
        }
        let grantee = Arc::new(rules.verify(&self.policy, &self.keys, secret, now)?);
        self.of_tokens.put(digest, grantee.clone(), now);
        Ok(grantee)
    }

    fn of_certificate(&self, subject: &str, now: u64) -> Result<Arc<Grantee>, AuthFailure> {
        let digest = Digest::of(subject.as_bytes());
        if let Some(grantee) = self.of_certificates.get(&digest) {
            return Ok(grantee);
        }
        let grantee = self.policy.of_certificate(subject).ok_or(AuthFailure::UnknownCertificate)?;
        let grantee = Arc::new(grantee);
        self.of_certificates.put(digest, grantee.clone(), now);
        Ok(grantee)
    }
}

impl Gate {
    /// Makes a gate with this policy and the keys of the token issuer.
    pub fn new(policy: Policy, keys: KeySet) -> Self {
        Self {
            state: ArcSwap::new(State::new(1, Arc::new(policy), Arc::new(keys))),
            failures: Default::default(),
            unknown_keys: AtomicU64::new(0),
        }
    }

    /// Returns the current policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.state.load().policy.clone()
    }

    /// Replaces the policy and the keys.
    pub fn replace(&self, policy: Policy, keys: KeySet) {
        self.become_state(Arc::new(policy), Arc::new(keys));
    }

    /// Replaces the keys of the issuer.
    pub fn replace_keys(&self, keys: KeySet) {
        self.become_state(self.policy(), Arc::new(keys));
    }

    /// Replaces the policy and keeps the keys.
    pub fn replace_policy(&self, policy: Policy) {
        let keys = self.state.load().keys.clone();
        self.become_state(Arc::new(policy), keys);
    }

    fn become_state(&self, policy: Arc<Policy>, keys: Arc<KeySet>) {
        self.state.rcu(|state| State::new(state.generation + 1, policy.clone(), keys.clone()));
    }

    /// Returns the number of tokens signed by an unknown key.
    pub fn unknown_signing_keys(&self) -> u64 {
        self.unknown_keys.load(Relaxed)
    }

    /// Returns the number of refusals, by reason.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.failures.iter().map(|count| count.load(Relaxed));
        AuthFailure::REASONS.into_iter().zip(counts)
    }

    /// Returns the client if its credentials allow the action at this second since 1970. `None` when anybody may do it without
    /// credentials.
    pub fn admit(
        &self,
        credentials: &Credentials<'_>,
        action: &Action<'_>,
        now: u64,
    ) -> Result<Option<Arc<Grantee>>, AccessError> {
        let state = self.state.load();
        if state.policy.is_open(action) {
            return Ok(None);
        }
        let grantee = state.identify(credentials, now);
        let grantee =
            grantee.map_err(|failure| self.counted(AccessError::Unauthenticated(failure)))?;
        self.check(Some(&grantee), action)?;
        Ok(Some(grantee))
    }

    /// Checks another action of a client that [`Gate::admit`] let in. Without a grantee, it checks that anybody may do it.
    pub fn check(&self, grantee: Option<&Grantee>, action: &Action<'_>) -> Result<(), AccessError> {
        match grantee {
            Some(grantee) if grantee.may(action) => Ok(()),
            _ if self.state.load().policy.is_open(action) => Ok(()),
            Some(grantee) => Err(self.counted(AccessError::denied(grantee, action))),
            None => Err(self.counted(AccessError::Unauthenticated(AuthFailure::Missing))),
        }
    }

    /// Checks again a grantee from the state of this `generation` (0 when unknown). Fails when the proof has expired or the
    /// current policy does not accept it. Returns the grantee and its generation when the state has changed.
    pub fn renew(
        &self,
        grantee: &Arc<Grantee>,
        generation: u64,
        now: u64,
    ) -> Result<Option<(Arc<Grantee>, u64)>, AccessError> {
        let state = self.state.load();
        let renewed = match state.generation == generation {
            true => Ok(None),
            false => state.renewed(grantee, now).map(Some),
        };
        let renewed =
            renewed.map_err(|failure| self.counted(AccessError::Unauthenticated(failure)))?;
        if renewed.as_ref().unwrap_or(grantee).has_expired(now) {
            return Err(self.counted(AccessError::Unauthenticated(AuthFailure::Expired)));
        }
        Ok(renewed.map(|grantee| (grantee, state.generation)))
    }

    fn counted(&self, error: AccessError) -> AccessError {
        let reason = error.reason();
        if let Some(n) = AuthFailure::REASONS.iter().position(|&known| known == reason) {
            self.failures[n].fetch_add(1, Relaxed);
        }
        if error == AccessError::Unauthenticated(AuthFailure::UnknownSigningKey) {
            self.unknown_keys.fetch_add(1, Relaxed);
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        jwt::tests::issuer::{Issuer, JWT, NOW},
        role::Role,
    };

    fn key_policy(key: &str, rest: &str) -> Policy {
        let digest = Digest::of(key.as_bytes());
        let text =
            format!("[[keys]]\nname = \"k\"\nsha256 = \"{digest}\"\nroles = \"read\"\n{rest}");
        Policy::parse("p", &text).expect("good")
    }

    fn with_key(key: &str) -> Credentials<'_> {
        Credentials { api_key: Some(key.as_bytes()), ..Credentials::default() }
    }

    fn count(gate: &Gate, reason: &str) -> u64 {
        gate.failures().find(|(name, _)| *name == reason).map_or(0, |(_, count)| count)
    }

    #[test]
    fn without_a_policy_everyone_has_the_default_roles() {
        let policy = Policy::for_anybody(&[Role::Infer, Role::Read]);
        assert!(policy.warnings().is_empty());
        let gate = Gate::new(policy, KeySet::default());
        for credentials in [Credentials::default(), with_key("of another server")] {
            for action in [Action::Live, Action::Infer("m"), Action::Read("m"), Action::Metrics] {
                assert!(gate.admit(&credentials, &action, NOW).is_ok(), "{action:?}");
            }
            for action in [Action::Control("m"), Action::ControlServer, Action::ControlSomething] {
                let error = gate.admit(&credentials, &action, NOW).expect_err("no role");
                assert_eq!(error.reason(), crate::refusal::DENIED);
                assert!(error.to_string().contains("--auth-policy"), "{error}");
            }
        }
        let anybody = gate.admit(&Credentials::default(), &Action::Infer("m"), NOW).expect("may");
        let anybody = anybody.expect("somebody");
        assert!(anybody.is_anybody() && gate.renew(&anybody, 0, NOW).is_ok());
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let gate = Gate::new(key_policy("key", "expires = 2020-01-01\n"), KeySet::default());
        let read = Action::ReadSomething;
        let reason = |credentials: &Credentials<'_>, now| {
            gate.admit(credentials, &read, now).map_err(|error| error.reason()).err()
        };
        assert_eq!(reason(&Credentials::default(), 1), Some("missing"));
        assert_eq!(reason(&with_key("other"), 1), Some("unknown_key"));
        assert_eq!(reason(&with_key("a.b.c"), 1), Some("unknown_key"), "no tokens are taken");
        assert_eq!(reason(&with_key("key"), 1), None);
        assert_eq!(reason(&with_key("key"), NOW), Some("expired"));
        assert_eq!(reason(&with_key(""), 1), Some("malformed"));
        let certificate = Credentials { certificate: Some("CN=a"), ..Credentials::default() };
        assert_eq!(reason(&certificate, 1), Some("unknown_certificate"));
        let denied = gate.admit(&with_key("key"), &Action::Infer("m"), 1).expect_err("denied");
        assert_eq!(denied.to_string(), "identity 'k' lacks the role 'infer' for model 'm'");
        for (reason, expected) in
            [("unknown_key", 2), ("expired", 1), ("denied", 1), ("missing", 1)]
        {
            assert_eq!(count(&gate, reason), expected, "{reason}");
        }
        assert!(gate.admit(&Credentials::default(), &Action::Live, 1).expect("open").is_none());
    }

    #[test]
    fn a_proof_made_under_an_older_policy_is_invalid() {
        let issuer = Issuer::new();
        let keys =
            |issuer: &Issuer| KeySet::parse(issuer.key_set().to_string().as_bytes()).expect("good");
        let policy = || Policy::parse("p", JWT).expect("good");
        let gate = Gate::new(policy(), keys(&issuer));
        let token = issuer.good(&json!({}));
        let admit = || gate.admit(&with_key(&token), &Action::Infer("m"), NOW);
        assert!(admit().is_ok() && admit().is_ok());
        gate.replace_keys(keys(&Issuer::new()));
        assert!(admit().is_err(), "its key is gone");
        gate.replace_keys(keys(&issuer));
        assert!(admit().is_ok());
        gate.replace_policy(key_policy("key", ""));
        assert!(admit().is_err());
        gate.replace(policy(), keys(&issuer));
        let late = gate.admit(&with_key(&token), &Action::Infer("m"), NOW + 130);
        assert_eq!(late.map_err(|error| error.reason()).err(), Some("expired"));
        let grantee = gate.admit(&with_key(&token), &Action::Infer("m"), NOW).expect("good");
        let grantee = grantee.expect("asked");
        let again = gate.renew(&grantee, 0, NOW + 130);
        assert_eq!(again.map_err(|error| error.reason()).err(), Some("expired"));
    }

    #[test]
    fn an_open_connection_gets_the_rights_of_the_current_policy() {
        let gate = Gate::new(key_policy("key", ""), KeySet::default());
        let read = Action::Read("m");
        let grantee = gate.admit(&with_key("key"), &read, 1).expect("known").expect("asked");
        let (grantee, generation) = gate.renew(&grantee, 0, 1).expect("known").expect("new");
        assert!(gate.renew(&grantee, generation, 1).expect("known").is_none(), "nothing changed");
        let more = "[[grants]]\nidentity = \"k\"\nroles = \"infer\"\n";
        gate.replace_policy(key_policy("key", more));
        let (renewed, later) = gate.renew(&grantee, generation, 1).expect("known").expect("new");
        assert!(renewed.may(&Action::Infer("m")) && !grantee.may(&Action::Infer("m")));
        gate.replace_policy(key_policy("other", ""));
        let gone = gate.renew(&renewed, later, 1);
        assert_eq!(gone.map_err(|error| error.reason()).err(), Some("unknown_key"));
    }

    #[test]
    fn a_kept_token_gets_the_rights_of_the_current_policy() {
        let issuer = Issuer::new();
        let keys = KeySet::parse(issuer.key_set().to_string().as_bytes()).expect("good");
        let gate = Gate::new(Policy::parse("p", JWT).expect("good"), keys);
        let token = issuer.good(&json!({"roles": ["infer", "team"]}));
        let infer = Action::Infer("m");
        let grantee = gate.admit(&with_key(&token), &infer, NOW).expect("good").expect("asked");
        let text =
            format!("{JWT}models = \"other\"\n[[grants]]\ngroup = \"team\"\nroles = \"read\"\n");
        gate.replace_policy(Policy::parse("p", &text).expect("good"));
        let (renewed, _) = gate.renew(&grantee, 1, NOW).expect("good").expect("new");
        assert!(renewed.may(&Action::Read("m")) && !renewed.may(&infer));
        gate.replace_policy(key_policy("key", ""));
        assert!(gate.renew(&grantee, 1, NOW).is_err(), "tokens are not taken any more");
    }

    #[test]
    fn an_unknown_key_requests_a_refresh_of_the_keys() {
        let issuer = Issuer::new();
        let gate = Gate::new(Policy::parse("p", JWT).expect("good"), KeySet::default());
        assert!(gate.admit(&with_key(&issuer.good(&json!({}))), &Action::Infer("m"), NOW).is_err());
        assert_eq!(gate.unknown_signing_keys(), 1);
    }

    #[test]
    fn credentials_are_never_printed() {
        let gate = Gate::new(key_policy("key", ""), KeySet::default());
        for secret in ["key", "sec.re.t", "galatea_secret"] {
            let shown = match gate.admit(&with_key(secret), &Action::Infer("m"), 1) {
                Ok(grantee) => format!("{grantee:?}"),
                Err(error) => format!("{error:?} {error}"),
            };
            assert!(!shown.contains("sec.re") && !shown.contains("galatea_secret"), "{shown}");
        }
        assert!(!format!("{gate:?}").contains("2c70e12b7a0646f9"), "no digest of a key");
    }
}

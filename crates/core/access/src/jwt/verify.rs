//! Checks tokens and reads their claims.

use galatea_types::Identity;
use jsonwebtoken::{Validation, decode, decode_header, errors::ErrorKind};
use serde_json::{Map, Value};

use super::{JwtRules, KeySet, SigningAlgorithm, ring_provider};
use crate::{
    grantee::{Grant, Grantee, IdentityProof},
    policy::Policy,
    refusal::AuthFailure,
    role::Role,
};

/// Longest name of an identity or a group in a token, in bytes, and most groups in a token.
const MAX_NAME: usize = 256;
const MAX_GROUPS: usize = 256;

const BAD_FORM: AuthFailure = AuthFailure::InvalidToken("the token could not be read");

impl JwtRules {
    /// Returns the client that the token proves at this second since 1970, by the keys of the issuer.
    pub(crate) fn verify(
        &self,
        policy: &Policy,
        keys: &KeySet,
        token: &[u8],
        now: u64,
    ) -> Result<Grantee, AuthFailure> {
        ring_provider::install();
        let claims = self.checked_claims(keys, token)?;
        let expires = self.check_times(&claims, now)?;
        let identity = claims.get(&self.identity_claim).and_then(Value::as_str);
        let identity = identity.filter(|name| is_name(name)).ok_or(AuthFailure::InvalidToken(
            "the token names no identity: the claim for it is missing or not a name",
        ))?;
        let groups = self.groups(&claims);
        let identity = Identity::new(&*self.issuer, identity);
        Ok(self.grantee(policy, identity, groups.into(), Some(expires)))
    }

    /// Makes the grantee of a token that named these groups.
    pub(crate) fn grantee(
        &self,
        policy: &Policy,
        identity: Identity,
        groups: Box<[String]>,
        expires: Option<u64>,
    ) -> Grantee {
        let own = self.own_grant(&groups).into_iter().collect();
        policy.grantee(identity, IdentityProof::Token(groups), own, expires)
    }

    /// Returns the claims of a token that the issuer has signed for this server.
    fn checked_claims(
        &self,
        keys: &KeySet,
        token: &[u8],
    ) -> Result<Map<String, Value>, AuthFailure> {
        let header = decode_header(token).map_err(|_| BAD_FORM)?;
        // This server understands no critical extension; RFC 7515 requires it to refuse such a token.
        if header.crit.is_some() {
            return Err(AuthFailure::InvalidToken("the token has critical extensions"));
        }
        let is_taken = |one: &SigningAlgorithm| one.library() == header.alg;
        let algorithm = self.algorithms.iter().copied().find(is_taken);
        let algorithm = algorithm
            .ok_or(AuthFailure::InvalidToken("tokens signed by this algorithm are not accepted"))?;
        let key = keys.find(header.kid.as_deref(), algorithm).ok_or_else(|| {
            match header.kid.as_deref().is_some_and(|id| keys.has(id)) {
                true => {
                    AuthFailure::InvalidToken("the algorithm of the token is not that of its key")
                }
                false => AuthFailure::UnknownSigningKey,
            }
        })?;
        let decoded = decode(token, &key.key, &self.validation(algorithm));
        let claims: Map<String, Value> = decoded.map_err(|error| failure_of(error.kind()))?.claims;
        // RFC 7519 allows one issuer per token; the library accepts a list that contains it.
        match claims.get("iss") {
            Some(Value::String(_)) => Ok(claims),
            _ => Err(AuthFailure::InvalidToken("the 'iss' of the token is not a text")),
        }
    }

    /// Checks everything except the times. They are compared with a clock that is passed in.
    fn validation(&self, algorithm: SigningAlgorithm) -> Validation {
        let mut validation = Validation::new(algorithm.library());
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&self.audience);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation
    }

    /// Checks the times. Returns the second from which the token is no longer valid.
    fn check_times(&self, claims: &Map<String, Value>, now: u64) -> Result<u64, AuthFailure> {
        let second = |name: &str| match claims.get(name) {
            None => Ok(None),
            Some(value) => second_of(value)
                .map(Some)
                .ok_or(AuthFailure::InvalidToken("a time in the token is not a number")),
        };
        let end = second("exp")?.ok_or(AuthFailure::InvalidToken("the token has no 'exp'"))?;
        let expires = end.saturating_add(self.leeway);
        if now >= expires {
            return Err(AuthFailure::Expired);
        }
        if second("nbf")?.is_some_and(|start| now.saturating_add(self.leeway) < start) {
            return Err(AuthFailure::InvalidToken("the token is not valid yet"));
        }
        Ok(expires)
    }

    /// Returns the names in the claim of roles: a list, or words separated by spaces.
    fn groups(&self, claims: &Map<String, Value>) -> Vec<String> {
        let value = self.roles_claim.as_ref().and_then(|name| claims.get(name));
        let all: Vec<&str> = match value {
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(words)) => words.split_whitespace().collect(),
            _ => Vec::new(),
        };
        let names = all.into_iter().filter(|name| name.len() <= MAX_NAME).take(MAX_GROUPS);
        names.map(str::to_owned).collect()
    }

    /// Returns the roles that the token itself names.
    fn own_grant(&self, groups: &[String]) -> Option<Grant> {
        let roles = groups.iter().filter_map(|name| Role::named(name)).collect();
        let grant = Grant { roles, models: self.models.clone() };
        (!grant.roles.is_empty()).then_some(grant)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

/// Reads seconds, which may have a fraction.
fn second_of(value: &Value) -> Option<u64> {
    let fraction = || value.as_f64().filter(|n| n.is_finite() && *n >= 0.0).map(|n| n as u64);
    value.as_u64().or_else(fraction)
}

fn failure_of(error: &ErrorKind) -> AuthFailure {
    AuthFailure::InvalidToken(match error {
        ErrorKind::InvalidSignature => "the signature of the token is wrong",
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::MissingRequiredClaim(name) => match name.as_str() {
            "exp" => "the token has no 'exp'",
            "iss" => "the token has no 'iss'",
            _ => "the token has no 'aud'",
        },
        _ => return BAD_FORM,
    })
}

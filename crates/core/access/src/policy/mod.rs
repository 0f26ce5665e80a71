//! A policy: the known clients, and what each may do. A policy that was read is complete and checked.

mod read;
mod table;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use galatea_types::Identity;

pub use self::{read::MAX_POLICY, table::PolicyError};
use crate::{
    action::Action,
    digest::Digest,
    grantee::{Grant, Grantee, IdentityProof},
    jwt::JwtRules,
    pattern::Pattern,
    role::Role,
};

/// The clients that may use the server, and their rights.
#[derive(Debug, Default)]
pub struct Policy {
    keys: HashMap<Digest, Arc<Grantee>>,
    certificates: Vec<CertificateRule>,
    jwt: Option<JwtRules>,
    grants: Vec<(GrantTarget, Grant)>,
    /// `None`: the policy does not list open routes, and only health is open.
    open: Option<Vec<OpenRoute>>,
    /// The grantee for every client, when the server asks for no proof.
    pub(crate) anybody: Option<Arc<Grantee>>,
}

/// The identity and grants of certificates with a matching subject.
#[derive(Debug)]
struct CertificateRule {
    subject: Pattern,
    /// The name of the identity; `None` for the subject.
    name: Option<Box<str>>,
    grants: Vec<Grant>,
}

/// The receivers of a grant.
#[derive(Debug)]
enum GrantTarget {
    /// Identities whose names match.
    Identity(Pattern),
    /// Clients whose tokens name a matching group.
    Group(Pattern),
}

/// A route that can be open to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenRoute {
    Health,
    ModelReady,
    Metrics,
    ServerMetadata,
}

galatea_types::names! {
    /// The name in a policy.
    OpenRoute::name {
        Health = "health", ModelReady = "model-ready", Metrics = "metrics", ServerMetadata = "server-metadata",
    }
}

impl Policy {
    /// Makes the policy without a file: clients need no proof, and all have these roles for all models, and no others.
    pub fn for_anybody(roles: &[Role]) -> Self {
        let grant = Grant {
            roles: roles.iter().copied().collect(),
            models: Arc::from([Pattern::new("*")]),
        };
        Self { anybody: Some(Arc::new(Grantee::anybody(grant))), ..Self::default() }
    }

    /// Returns whether anybody may do this action.
    pub(crate) fn is_open(&self, action: &Action<'_>) -> bool {
        let route = match action {
            Action::Live => OpenRoute::Health,
            Action::ModelReady(_) | Action::SomethingReady => OpenRoute::ModelReady,
            Action::Metrics => OpenRoute::Metrics,
            Action::ServerMetadata => OpenRoute::ServerMetadata,
            _ => return false,
        };
        self.open.as_deref().unwrap_or(&[OpenRoute::Health]).contains(&route)
    }

    /// Returns the owner of a key.
    pub(crate) fn owner_of(&self, key: &Digest) -> Option<&Arc<Grantee>> {
        self.keys.get(key)
    }

    /// Returns the rules for tokens, if tokens are accepted.
    pub fn jwt(&self) -> Option<&JwtRules> {
        self.jwt.as_ref()
    }

    /// Returns the client that a certificate with this subject proves.
    pub(crate) fn of_certificate(&self, subject: &str) -> Option<Grantee> {
        let rule = self.certificates.iter().find(|rule| rule.subject.matches_subject(subject))?;
        let identity = Identity::new("certificates", rule.name.as_deref().unwrap_or(subject));
        let proof = IdentityProof::Certificate(subject.into());
        Some(self.grantee(identity, proof, rule.grants.clone(), None))
    }

    /// Makes the grantee of `identity`. It has the grants of the proof itself and those of the policy.
    pub(crate) fn grantee(
        &self,
        identity: Identity,
        proof: IdentityProof,
        mut own: Vec<Grant>,
        expires: Option<u64>,
    ) -> Grantee {
        let groups: &[String] = match &proof {
            IdentityProof::Token(groups) => groups,
            IdentityProof::Key(_) | IdentityProof::Certificate(_) | IdentityProof::None => &[],
        };
        let is_given = |whose: &GrantTarget| match whose {
            GrantTarget::Identity(pattern) => pattern.matches(identity.name()),
            GrantTarget::Group(pattern) => groups.iter().any(|group| pattern.matches(group)),
        };
        own.extend(self.grants.iter().filter(|(to, _)| is_given(to)).map(|(_, g)| g.clone()));
        Grantee::new(identity, proof, own, expires)
    }

    /// Returns the counts of its parts, for a log line.
    pub fn summary(&self) -> String {
        let (keys, certificates, grants) =
            (self.keys.len(), self.certificates.len(), self.grants.len());
        let tokens = if self.jwt.is_some() { "tokens of one issuer" } else { "no tokens" };
        format!("{keys} API keys, {certificates} certificates, {tokens}, {grants} grants")
    }

    /// Returns warnings for the operator: the policy lets nobody in.
    pub fn warnings(&self) -> Vec<String> {
        let is_closed = self.anybody.is_none()
            && self.keys.is_empty()
            && self.certificates.is_empty()
            && self.jwt.is_none();
        let closed = "the policy has no [[keys]], no [[certificates]] and no [jwt]: only open routes are answered";
        is_closed.then(|| closed.to_owned()).into_iter().collect()
    }
}

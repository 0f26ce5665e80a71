//! A policy: who is known, and what each may do. Checked: one that was read is whole.

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

/// Who may use the server, and how.
#[derive(Debug, Default)]
pub struct Policy {
    keys: HashMap<Digest, Arc<Grantee>>,
    certificates: Vec<CertificateRule>,
    jwt: Option<JwtRules>,
    grants: Vec<(GrantTarget, Grant)>,
    /// `None`: the policy does not say, and health is.
    open: Option<Vec<OpenRoute>>,
    /// Whom every client counts as, where nobody has to say who it is.
    pub(crate) anybody: Option<Arc<Grantee>>,
}

/// What a certificate whose subject matches is worth.
#[derive(Debug)]
struct CertificateRule {
    subject: Pattern,
    /// `None`: the subject.
    name: Option<Box<str>>,
    grants: Vec<Grant>,
}

/// To whom a grant is given.
#[derive(Debug)]
enum GrantTarget {
    /// Those whose names match.
    Identity(Pattern),
    /// Those whose tokens name such a group.
    Group(Pattern),
}

/// What anybody may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenRoute {
    Health,
    ModelReady,
    Metrics,
    ServerMetadata,
}

galatea_types::names! {
    /// As it is written in a policy.
    OpenRoute::name {
        Health = "health", ModelReady = "model-ready", Metrics = "metrics", ServerMetadata = "server-metadata",
    }
}

impl Policy {
    /// Without a file: nobody has to say who it is, and anybody has these roles for all models, and no others.
    pub fn for_anybody(roles: &[Role]) -> Self {
        let grant = Grant {
            roles: roles.iter().copied().collect(),
            models: Arc::from([Pattern::new("*")]),
        };
        Self { anybody: Some(Arc::new(Grantee::anybody(grant))), ..Self::default() }
    }

    /// Whether anybody may do this.
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

    /// The owner of a key.
    pub(crate) fn owner_of(&self, key: &Digest) -> Option<&Arc<Grantee>> {
        self.keys.get(key)
    }

    /// What is said of tokens, if they are taken.
    pub fn jwt(&self) -> Option<&JwtRules> {
        self.jwt.as_ref()
    }

    /// Whom a certificate of this subject proves.
    pub(crate) fn of_certificate(&self, subject: &str) -> Option<Grantee> {
        let rule = self.certificates.iter().find(|rule| rule.subject.matches_subject(subject))?;
        let identity = Identity::new("certificates", rule.name.as_deref().unwrap_or(subject));
        let proof = IdentityProof::Certificate(subject.into());
        Some(self.grantee(identity, proof, rule.grants.clone(), None))
    }

    /// Somebody who has proved to be `identity`, with what the proof itself grants and what the policy does.
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

    /// How much it has, for a line in the log.
    pub fn summary(&self) -> String {
        let (keys, certificates, grants) =
            (self.keys.len(), self.certificates.len(), self.grants.len());
        let tokens = if self.jwt.is_some() { "tokens of one issuer" } else { "no tokens" };
        format!("{keys} API keys, {certificates} certificates, {tokens}, {grants} grants")
    }

    /// What an operator should know of: nobody would be let in, or anybody.
    pub fn warnings(&self) -> Vec<String> {
        let is_closed = self.anybody.is_none()
            && self.keys.is_empty()
            && self.certificates.is_empty()
            && self.jwt.is_none();
        let closed = "the policy has no [[keys]], no [[certificates]] and no [jwt]: only open routes are answered";
        is_closed.then(|| closed.to_owned()).into_iter().collect()
    }
}

//! Clients that have proved their identity, and their roles.

use std::sync::Arc;

use galatea_types::Identity;

use crate::{
    action::Action,
    digest::Digest,
    pattern::Pattern,
    role::{Role, RoleSet},
};

/// Roles for some models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub roles: RoleSet,
    pub models: Arc<[Pattern]>,
}

impl Grant {
    fn covers(&self, model: &str) -> bool {
        self.models.iter().any(|pattern| pattern.matches(model))
    }

    fn covers_everything(&self) -> bool {
        self.models.iter().any(Pattern::is_everything)
    }
}

/// The proof of an identity, with the parts that are kept.
#[derive(Clone, Debug)]
pub(crate) enum IdentityProof {
    /// A key with this digest.
    Key(Digest),
    /// A certificate with this subject.
    Certificate(Box<str>),
    /// A token that named these groups.
    Token(Box<[String]>),
    /// No proof: the server asks for none.
    None,
}

/// A client that has proved its identity.
#[derive(Clone, Debug)]
pub struct Grantee {
    identity: Arc<Identity>,
    pub(crate) proof: IdentityProof,
    grants: Box<[Grant]>,
    pub(crate) expires: Option<u64>,
}

impl Grantee {
    /// Makes a grantee. Its proof ends at `expires`, a second since 1970.
    pub(crate) fn new(
        identity: Identity,
        proof: IdentityProof,
        grants: Vec<Grant>,
        expires: Option<u64>,
    ) -> Self {
        Self { identity: Arc::new(identity), proof, grants: grants.into(), expires }
    }

    /// Makes the grantee for every client of a server that asks for no proof.
    pub(crate) fn anybody(grant: Grant) -> Self {
        Self::new(Identity::new("", "anybody"), IdentityProof::None, vec![grant], None)
    }

    /// Returns whether it stands for every client.
    pub fn is_anybody(&self) -> bool {
        matches!(self.proof, IdentityProof::None)
    }

    /// Returns its identity.
    pub fn identity(&self) -> &Arc<Identity> {
        &self.identity
    }

    /// Returns whether its proof has expired at this second since 1970.
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|end| now >= end)
    }

    /// Returns whether it has the role for this model.
    pub fn has_role(&self, role: Role, model: &str) -> bool {
        self.grants.iter().any(|grant| grant.roles.has(role) && grant.covers(model))
    }

    /// Returns whether it has the role for any possible model.
    fn has_role_somewhere(&self, role: Role) -> bool {
        self.grants.iter().any(|grant| grant.roles.has(role))
    }

    /// Returns whether it has the role for every model.
    fn has_role_everywhere(&self, role: Role) -> bool {
        self.grants.iter().any(|grant| grant.roles.has(role) && grant.covers_everything())
    }

    /// Returns whether it may do this action.
    pub fn may(&self, action: &Action<'_>) -> bool {
        match *action {
            Action::Live | Action::ServerMetadata | Action::Reflection => true,
            Action::ModelReady(model) => {
                self.has_role(Role::Read, model) || self.has_role(Role::Infer, model)
            }
            Action::SomethingReady => {
                self.has_role_somewhere(Role::Read) || self.has_role_somewhere(Role::Infer)
            }
            Action::Infer(model) => self.has_role(Role::Infer, model),
            Action::InferSomething => self.has_role_somewhere(Role::Infer),
            Action::Read(model) => self.has_role(Role::Read, model),
            Action::ReadSomething => self.has_role_somewhere(Role::Read),
            Action::ReadEverything | Action::Metrics => self.has_role_everywhere(Role::Read),
            Action::Control(model) => self.has_role(Role::Control, model),
            Action::ControlSomething => self.has_role_somewhere(Role::Control),
            Action::ControlServer => self.has_role_everywhere(Role::Control),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grantee(grants: &[(&[Role], &[&str])]) -> Grantee {
        let grants = grants.iter().map(|(roles, models)| Grant {
            roles: roles.iter().copied().collect(),
            models: models.iter().map(|model| Pattern::new(model)).collect(),
        });
        Grantee::new(
            Identity::new("", "i"),
            IdentityProof::Token([].into()),
            grants.collect(),
            Some(100),
        )
    }

    #[test]
    fn each_action_needs_its_role_for_its_models() {
        let some = grantee(&[(&[Role::Infer], &["a*"]), (&[Role::Read], &["b"])]);
        for (action, is_allowed) in [
            (Action::Live, true),
            (Action::ServerMetadata, true),
            (Action::Infer("a1"), true),
            (Action::Infer("b"), false),
            (Action::Read("b"), true),
            (Action::Read("a1"), false),
            (Action::ModelReady("a1"), true),
            (Action::ModelReady("b"), true),
            (Action::ModelReady("c"), false),
            (Action::InferSomething, true),
            (Action::ReadSomething, true),
            (Action::ReadEverything, false),
            (Action::Metrics, false),
            (Action::ControlSomething, false),
            (Action::Control("a1"), false),
        ] {
            assert_eq!(some.may(&action), is_allowed, "{action:?}");
        }
        let admin = grantee(&[(&[Role::Admin], &["*"])]);
        for action in [Action::ControlServer, Action::Metrics, Action::Control("x")] {
            assert!(admin.may(&action), "{action:?}");
        }
        let of_some = grantee(&[(&[Role::Admin], &["a*", "b*"])]);
        assert!(of_some.may(&Action::Control("b")) && !of_some.may(&Action::ControlServer));
    }

    #[test]
    fn a_proof_is_valid_until_it_expires() {
        let grantee = grantee(&[]);
        assert!(!grantee.has_expired(99) && grantee.has_expired(100));
        let proof = IdentityProof::Certificate("CN=i".into());
        let lasting = Grantee::new(Identity::new("", "i"), proof, Vec::new(), None);
        assert!(!lasting.has_expired(u64::MAX));
    }
}

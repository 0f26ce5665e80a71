//! Roles that the operator can grant to an identity.

use std::fmt;

/// A kind of calls that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Inference of every kind.
    Infer,
    /// Metadata, configurations, statistics, the index, metrics, the console.
    Read,
    /// Loading and unloading models, settings of log and trace, regions of shared memory.
    Control,
    /// Everything.
    Admin,
}

galatea_types::names! {
    /// The name in a policy.
    pub Role::name {
        Infer = "infer", Read = "read", Control = "control", Admin = "admin",
    }
}

impl Role {
    /// Returns the role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleSet(u8);

impl RoleSet {
    /// Adds a role; `admin` adds all of them.
    pub fn insert(&mut self, role: Role) {
        self.0 |= match role {
            Role::Admin => u8::MAX,
            role => 1 << role as u8,
        };
    }

    /// Returns whether it contains this role.
    pub fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u8) != 0
    }

    /// Returns whether it is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        let mut set = Self::default();
        roles.into_iter().for_each(|role| set.insert(role));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_implies_itself_and_admin_implies_all() {
        for role in Role::ALL {
            assert_eq!(Role::named(role.name()), Some(role));
            let set: RoleSet = [role].into_iter().collect();
            for other in Role::ALL {
                assert_eq!(set.has(other), role == other || role == Role::Admin, "{role} {other}");
            }
        }
        assert!(RoleSet::default().is_empty());
        assert_eq!(Role::named("Infer"), None);
    }
}

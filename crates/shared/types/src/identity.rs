//! The identities of clients.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// The identity of a client, which it proved by an API key, a token or a certificate. Fair sharing between clients is sharing
/// between identities.
///
/// The issuer is part of it. If an issuer of tokens gives a user the name of an API key, that user does not become the owner of
/// the key.
#[derive(Clone, Eq)]
pub struct Identity {
    issuer: Arc<str>,
    name: Box<str>,
    key: u64,
}

impl Identity {
    /// Makes an identity. The name is no secret: it is logged. `issuer` vouches for the name.
    pub fn new(issuer: impl Into<Arc<str>>, name: impl Into<Box<str>>) -> Self {
        let (issuer, name) = (issuer.into(), name.into());
        let mut hasher = DefaultHasher::new();
        (&*issuer, &*name).hash(&mut hasher);
        Self { key: hasher.finish(), issuer, name }
    }

    /// Returns the name that the operator knows.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a number that is equal for the same name and issuer, and almost certainly different for others.
    pub fn key(&self) -> u64 {
        self.key
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.name == other.name && self.issuer == other.issuer
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.name).finish()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_equal_identities() {
        let [one, again, other] = ["a", "a", "b"].map(|name| Identity::new("keys", name));
        let namesake = Identity::new("https://issuer", "a");
        assert_ne!(one, namesake);
        assert_ne!(one.key(), namesake.key());
        assert_eq!((&one, one.key()), (&again, again.key()));
        assert_ne!(one, other);
        assert_ne!(one.key(), other.key());
        assert_eq!(one.to_string(), "a");
    }
}

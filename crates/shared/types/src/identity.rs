//! Who a client has proved to be.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

/// Who sent a request, where the server asked clients to prove it: by an API key, a token or a certificate. What is
/// shared fairly between clients is shared between these.
///
/// Who vouches for a name is part of it: an issuer of tokens that gives one of its users the name of an API key does not
/// make that user the owner of the key.
#[derive(Clone, Eq)]
pub struct Identity {
    issuer: Arc<str>,
    name: Box<str>,
    key: u64,
}

impl Identity {
    /// Of this name, which is no secret: it is logged. `issuer`: who vouches for it.
    pub fn new(issuer: impl Into<Arc<str>>, name: impl Into<Box<str>>) -> Self {
        let (issuer, name) = (issuer.into(), name.into());
        let mut hasher = DefaultHasher::new();
        (&*issuer, &*name).hash(&mut hasher);
        Self { key: hasher.finish(), issuer, name }
    }

    /// As the operator knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that is the same for the same name of the same issuer, and with next to certainty another for another one.
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
    fn the_same_name_is_the_same_identity() {
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

//! Who a client has proved to be.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

/// Who sent a request, where the server asked clients to prove it: by an API key, a token or a certificate. What is
/// shared fairly between clients is shared between these.
#[derive(Clone, Eq)]
pub struct Identity {
    name: Box<str>,
    key: u64,
}

impl Identity {
    /// Of this name, which is no secret: it is logged.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        let name = name.into();
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self { key: hasher.finish(), name }
    }

    /// As the operator knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that is the same for the same name, and with next to certainty another for another one.
    pub fn key(&self) -> u64 {
        self.key
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.name == other.name
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
        let (one, again, other) = (Identity::new("a"), Identity::new("a"), Identity::new("b"));
        assert_eq!((&one, one.key()), (&again, again.key()));
        assert_ne!(one, other);
        assert_ne!(one.key(), other.key());
        assert_eq!(one.to_string(), "a");
    }
}

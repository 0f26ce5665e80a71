//! Calls that break the rules of the interface.

/// A call that breaks the rules of the interface, such as the release of a handle that was released before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse(pub String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

//! How far workers are confined.

/// What workers may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationLevel {
    /// What the server's user may.
    #[default]
    None,
    /// Only listed files, no other processes, no administration of the machine.
    Standard,
    /// In addition no connection to anything, and nothing that the server will read again can be changed.
    Strict,
}

galatea_types::names! {
    pub IsolationLevel::name {
        None = "none", Standard = "standard", Strict = "strict",
    }
}

impl IsolationLevel {
    /// As options name them.
    pub const NAMES: [&'static str; 3] = ["none", "standard", "strict"];

    /// The level of a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let read = IsolationLevel::NAMES.map(|name| IsolationLevel::parse(name).map(|l| l.name()));
        assert_eq!(read, IsolationLevel::NAMES.map(Some));
        assert_eq!(IsolationLevel::parse("STRICT"), Some(IsolationLevel::Strict));
        assert_eq!(IsolationLevel::parse("sandbox"), None);
    }
}

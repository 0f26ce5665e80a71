//! The levels of isolation of workers.

/// The confinement of a worker, from none to strict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IsolationLevel {
    /// No confinement: a worker may do what the server's user may.
    #[default]
    None,
    /// Only listed files, no other processes, no administration of the machine.
    Standard,
    /// In addition, no connections, and no changes to anything that the server will read again.
    Strict,
}

galatea_types::names! {
    pub IsolationLevel::name {
        None = "none", Standard = "standard", Strict = "strict",
    }
}

impl IsolationLevel {
    /// Names of the levels in options.
    pub const NAMES: [&'static str; 3] = ["none", "standard", "strict"];

    /// Returns the level of a name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_names_are_parsed() {
        let read = IsolationLevel::NAMES.map(|name| IsolationLevel::parse(name).map(|l| l.name()));
        assert_eq!(read, IsolationLevel::NAMES.map(Some));
        assert_eq!(IsolationLevel::parse("STRICT"), Some(IsolationLevel::Strict));
        assert_eq!(IsolationLevel::parse("sandbox"), None);
    }
}

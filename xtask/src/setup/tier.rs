//! The tiers of tests. Each needs more besides Rust than the one before.

/// A part of the suite by its purpose. Later ones need more than earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Commit,
    Peers,
    Measure,
}

impl Tier {
    /// Returns its name in the environment of the tests (`GALATEA_TEST_TIER`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Peers => "peers",
            Self::Measure => "measure",
        }
    }

    /// Returns the expression of pytest marks that selects its tests in Python.
    pub fn marks(self) -> &'static str {
        match self {
            Self::Commit => "not peers and not measure",
            Self::Peers => "peers and not measure",
            Self::Measure => "measure",
        }
    }
}

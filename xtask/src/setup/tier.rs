//! The tiers of tests, which need more and more beside Rust.

/// A part of the suite, told by its purpose. Later ones need more than earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Commit,
    Peers,
    Measure,
}

impl Tier {
    /// Its name in the environment of the tests (`GALATEA_TEST_TIER`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Peers => "peers",
            Self::Measure => "measure",
        }
    }

    /// The tests in Python that belong to it, as an expression of marks.
    pub fn marks(self) -> &'static str {
        match self {
            Self::Commit => "not peers and not measure",
            Self::Peers => "peers and not measure",
            Self::Measure => "measure",
        }
    }
}

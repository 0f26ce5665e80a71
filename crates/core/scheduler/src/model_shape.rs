//! The number of requests that a model can execute at once.

/// The highest limit for a model that takes requests without being asked how many it can execute.
const MOST: u32 = 4096;

/// The requests that a model can execute at once, as far as its configuration tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelShape {
    pub instances: u32,
    /// Items that one execution may have.
    pub per_execution: u32,
    /// True if an instance takes more requests while it executes others.
    pub is_open: bool,
}

impl ModelShape {
    /// Returns the number of places in execution when all instances have full batches.
    pub fn places(self) -> u32 {
        self.instances.max(1).saturating_mul(self.per_execution.max(1))
    }

    /// With less, an instance would have nothing to do between two requests.
    pub fn lowest(self) -> u32 {
        self.instances.max(1).saturating_add(1)
    }

    /// One full batch is executed by each instance, and one waits.
    pub fn highest(self) -> u32 {
        let closed = self.places().saturating_mul(2).max(self.lowest());
        if self.is_open { closed.max(MOST) } else { closed }
    }

    /// The limit before anything was measured.
    pub fn initial(self) -> u32 {
        self.places().saturating_mul(2).max(self.lowest())
    }
}

//! Shared memory that a client registered under a name, as the translation sees it: something that finds it.

use std::sync::Arc;

use galatea_types::{Error, Region, Result};

/// Finds registered regions by their names.
pub trait Regions: Send + Sync {
    /// The region called `name`; "not found" where there is none.
    fn find(&self, name: &str) -> Result<Arc<dyn Region>>;
}

/// For a server at which no region can be registered: none is found.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRegions;

impl Regions for NoRegions {
    fn find(&self, name: &str) -> Result<Arc<dyn Region>> {
        Err(Error::not_found(format!("Unable to find shared memory region: '{name}'")))
    }
}

#[cfg(test)]
mod tests;

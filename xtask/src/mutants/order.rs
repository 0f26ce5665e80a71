//! The order of the faults, in which as little as possible is compiled twice.

use std::cmp::Reverse;

use super::patch::Patch;
use crate::crates::Crates;

/// Puts the crates that need others before those: when a fault is taken back, the crate and all that need it are compiled
/// again where something asks for them, and nothing after it does.
pub fn put_dependents_first(crates: &Crates, patches: &mut [Patch]) {
    patches.sort_by_cached_key(|patch| {
        let owner = crates.owner(&patch.changes).unwrap_or_default();
        (Reverse(crates.height(owner)), owner.to_owned(), patch.name.clone())
    });
}

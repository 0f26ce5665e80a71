//! Sorts the faults so that as little as possible is compiled twice.

use std::cmp::Reverse;

use super::patch::Patch;
use crate::crates::Crates;

/// Puts crates before the ones that they depend on. Reverting a fault makes cargo compile the crate and its dependents again;
/// no later fault needs them.
pub fn put_dependents_first(crates: &Crates, patches: &mut [Patch]) {
    patches.sort_by_cached_key(|patch| {
        let owner = crates.owner(&patch.changes).unwrap_or_default();
        (Reverse(crates.height(owner)), owner.to_owned(), patch.name.clone())
    });
}

//! The properties of a request that a queue uses.

use std::time::{Duration, Instant};

use super::join_rules::{Extent, JoinRules};

/// A request in a queue.
pub(crate) trait QueueEntry {
    /// Returns the number of items in this request; a batch has a limit on their sum.
    fn item_count(&self) -> u64;
    fn queued_at(&self) -> Instant;
    /// Returns true if the client has gone.
    fn is_abandoned(&self) -> bool;
    fn placement(&self) -> Placement;
    /// Returns the identity of the client, if it is known: clients take turns.
    fn client(&self) -> Option<u64>;
    /// Sets the number of the request among all accepted ones, counted from 0 without a gap.
    fn set_arrival(&mut self, arrival: u64);
    /// Returns true if it may join a batch with this first request and extent. The extent then includes it.
    fn joins(&self, first: &Self, extent: &mut Extent, rules: &JoinRules) -> bool {
        let _ = extent;
        first.can_join(self, rules)
    }
    /// Returns true if both may be in one batch.
    fn can_join(&self, other: &Self, rules: &JoinRules) -> bool;
}

/// The priority and time-out that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Placement {
    /// 1 is the highest; 0 and levels that do not exist mean the default level.
    pub priority: u64,
    /// The longest wait, if the level allows requests to set a time-out.
    pub timeout: Option<Duration>,
}

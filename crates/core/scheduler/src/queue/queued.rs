//! What a queue must know of a request.

use std::time::{Duration, Instant};

use super::join_rules::{Extent, JoinRules};

/// A request in a queue.
pub(crate) trait Queued {
    /// Items in this request, which a batch has a largest number of.
    fn item_count(&self) -> u64;
    fn queued_at(&self) -> Instant;
    /// Nobody waits for the response any more.
    fn is_abandoned(&self) -> bool;
    fn placement(&self) -> Placement;
    /// Who sent the request, where that is known: clients take turns.
    fn client(&self) -> Option<u64>;
    /// Sets the place of the request among all that were accepted, from 0 without a gap.
    fn set_arrival(&mut self, arrival: u64);
    /// Whether it may join a batch of this first request and this extent, which grows by it then.
    fn joins(&self, first: &Self, extent: &mut Extent, rules: &JoinRules) -> bool {
        let _ = extent;
        first.can_join(self, rules)
    }
    /// Whether both may be in one batch.
    fn can_join(&self, other: &Self, rules: &JoinRules) -> bool;
}

/// Where a request wants to be in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Placement {
    /// 1 is the highest; 0 and levels that do not exist mean the default one.
    pub priority: u64,
    /// How long the request may wait, where its level allows requests to have a time-out.
    pub timeout: Option<Duration>,
}

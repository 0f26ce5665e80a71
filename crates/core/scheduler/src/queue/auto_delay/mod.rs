//! Decides how long a batch waits for more requests if the server chooses the delay: as long as waiting pays.
//!
//! Part of the cost of an execution is fixed, so items of a larger batch cost less each. A free instance with some items
//! gains by waiting if the next one comes within the time that one item less would have cost ([`ExecutionCost::worth`]).
//! Two figures predict this. Clients that send again as soon as they have their answer form a crowd of a certain size
//! ([`InFlightPeak`]). When all of it is in flight, no request is expected, so a single client never waits. While requests
//! are expected, the next one comes after about the usual gap ([`ArrivalGaps`]). After the answers of a batch this gap is
//! short for such clients; for requests at random times it may have any length.
//!
//! An instance that waited in vain expects fewer requests afterwards. Callers pass the time, as everywhere in this folder.

mod arrival_gaps;
mod cost;
mod in_flight_peak;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use self::{arrival_gaps::ArrivalGaps, cost::ExecutionCost, in_flight_peak::InFlightPeak};
use super::batching::GrowingBatch;

/// A batch waits only if the usual gap is below 1/4 of the time that it may wait.
const SOON: u32 = 4;

/// The share of the last wait in the mean of waits.
const SHARE_OF_LAST_WAIT: f64 = 1.0 / 16.0;

/// Measurements of one queue, its instances and its clients.
#[derive(Default)]
pub(crate) struct AutoDelay {
    cost: ExecutionCost,
    crowd: InFlightPeak,
    gaps: ArrivalGaps,
    /// By the number of the instance.
    executing: BTreeMap<usize, Execution>,
    executing_items: u64,
    /// When the next batch began to wait.
    waiting_since: Option<Instant>,
    /// The mean wait of the last batches, in seconds.
    mean_wait: f64,
}

struct Execution {
    items: u64,
    began: Instant,
}

impl AutoDelay {
    /// Records a request; `queued` is the number of waiting items.
    pub fn arrived(&mut self, at: Instant, queued: u64) {
        let in_flight = queued + self.executing_items;
        self.crowd.note(in_flight);
        self.gaps.arrived(at, self.missing(queued) > 0);
    }

    /// Records that an instance begins to execute `items` items.
    pub fn begins(&mut self, instance: usize, items: u64, now: Instant) {
        self.executing_items += items;
        self.executing.insert(instance, Execution { items, began: now });
        let waited = self.waiting_since.take().map_or(Duration::ZERO, |since| now - since);
        self.mean_wait += (waited.as_secs_f64() - self.mean_wait) * SHARE_OF_LAST_WAIT;
    }

    /// Records that an instance has finished its batch, if it had one; `queued` is the number of waiting items.
    pub fn ended(&mut self, instance: usize, queued: u64, now: Instant) {
        let Some(execution) = self.executing.remove(&instance) else { return };
        self.executing_items -= execution.items;
        self.cost.note(execution.items, now.saturating_duration_since(execution.began));
        self.crowd.executed();
        self.gaps.answered(now, self.missing(queued) > 0);
    }

    /// Decides if a batch waits, at most as `batch` allows. `items` is the number of waiting items that fit into one batch.
    /// `free_instances` includes the instance that asks.
    pub fn decide(
        &mut self,
        batch: GrowingBatch,
        now: Instant,
        items: u64,
        free_instances: usize,
    ) -> Option<GrowingBatch> {
        let missing = self.missing(items);
        // The expected items are shared among all free instances, so each gains less by waiting.
        let free = u32::try_from(free_instances).unwrap_or(u32::MAX).max(1);
        let share = (items + missing).div_ceil(u64::from(free));
        let worth = self.cost.worth(items);
        let soon = worth / SOON.saturating_mul(free);
        let comes_soon = self.gaps.usual().is_none_or(|gap| gap < soon);
        if missing == 0 || share <= items || !comes_soon {
            return None;
        }
        let until = self.gaps.since().unwrap_or(now) + worth;
        if until <= now {
            if self.waiting_since.is_some() {
                self.crowd.disappointed(items + self.executing_items);
            }
            return None;
        }
        self.waiting_since.get_or_insert(now);
        Some(GrowingBatch {
            until: until.min(batch.until),
            enough_items: share.min(batch.enough_items),
        })
    }

    /// Returns when the next batch began to wait although an instance was free.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// Returns the mean wait of recent batches.
    pub fn mean_wait(&self) -> Duration {
        Duration::try_from_secs_f64(self.mean_wait).unwrap_or_default()
    }

    /// Returns the number of items that clients are expected to send.
    fn missing(&self, queued: u64) -> u64 {
        self.crowd.size().saturating_sub(queued + self.executing_items)
    }
}

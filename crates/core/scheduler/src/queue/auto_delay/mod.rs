//! How long a batch waits for more requests where that is left to the server: as long as it pays.
//!
//! A batch of more items costs less for each, because part of the cost of an execution is the same for any size. An instance
//! that is free and has some items at hand gains by waiting for one more if that comes soon enough: before the time is over
//! that one item less would have cost ([`ExecutionCost::worth`]). Whether it comes so soon is guessed from two figures. Callers
//! that ask again as soon as they have their answer are a crowd of a certain size ([`InFlightPeak`]): when all of it is in flight,
//! nobody is left to be waited for, so that a lone caller never waits. While somebody is missing, the next request comes
//! after about the time that it usually took ([`ArrivalGaps`]), which after the answers of a batch is short for such callers, and
//! for requests that come at random whatever it is.
//!
//! Who waited in vain expects fewer from then on. Time is handed in, as everywhere in this folder.

mod cost;
mod crowd;
mod gaps;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use self::{cost::ExecutionCost, crowd::InFlightPeak, gaps::ArrivalGaps};
use super::batching::GrowingBatch;

/// The next request is waited for where it usually comes in this part of the time that it may be waited for.
const SOON: u32 = 4;

/// How much of the mean of waits the last one is.
const SHARE_OF_LAST_WAIT: f64 = 1.0 / 16.0;

/// What was learned of one queue, its instances and those who ask.
#[derive(Default)]
pub(crate) struct AutoDelay {
    cost: ExecutionCost,
    crowd: InFlightPeak,
    gaps: ArrivalGaps,
    /// By the number of the instance.
    executing: BTreeMap<usize, Execution>,
    executing_items: u64,
    /// Since when the batch that comes next waits.
    waiting_since: Option<Instant>,
    /// Of the last batches, in seconds.
    mean_wait: f64,
}

struct Execution {
    items: u64,
    began: Instant,
}

impl AutoDelay {
    /// A request has been queued; `queued` items wait now.
    pub fn arrived(&mut self, at: Instant, queued: u64) {
        let in_flight = queued + self.executing_items;
        self.crowd.note(in_flight);
        self.gaps.arrived(at, self.missing(queued) > 0);
    }

    /// An instance begins with so many items.
    pub fn begins(&mut self, instance: usize, items: u64, now: Instant) {
        self.executing_items += items;
        self.executing.insert(instance, Execution { items, began: now });
        let waited = self.waiting_since.take().map_or(Duration::ZERO, |since| now - since);
        self.mean_wait += (waited.as_secs_f64() - self.mean_wait) * SHARE_OF_LAST_WAIT;
    }

    /// An instance is done with what it had, if it had something; `queued` items wait.
    pub fn ended(&mut self, instance: usize, queued: u64, now: Instant) {
        let Some(execution) = self.executing.remove(&instance) else { return };
        self.executing_items -= execution.items;
        self.cost.note(execution.items, now.saturating_duration_since(execution.began));
        self.crowd.executed();
        self.gaps.answered(now, self.missing(queued) > 0);
    }

    /// What to do with a batch that may wait as `batch` says at most. `items`: all that are at hand, which may be in one
    /// batch. `free_instances`: those that are free, the one that asks included.
    pub fn decide(
        &mut self,
        batch: GrowingBatch,
        now: Instant,
        items: u64,
        free_instances: usize,
    ) -> Option<GrowingBatch> {
        let missing = self.missing(items);
        // Those who come are shared among all that are free, which have less to gain by waiting, each.
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

    /// Since when the batch that comes next waits although an instance is free.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// How long batches waited lately, on average.
    pub fn mean_wait(&self) -> Duration {
        Duration::try_from_secs_f64(self.mean_wait).unwrap_or_default()
    }

    /// Items that somebody may be expected to send.
    fn missing(&self, queued: u64) -> u64 {
        self.crowd.size().saturating_sub(queued + self.executing_items)
    }
}

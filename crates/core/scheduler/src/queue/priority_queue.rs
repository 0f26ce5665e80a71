//! The order of execution: by priority level, then clients in turn, then in the order of arrival.

use std::time::{Duration, Instant};

use galatea_config::{DynamicBatching, QueuePolicy};

use super::{
    fair_list::Entry,
    levels::{self, Levels},
    queue_entry::QueueEntry,
};

/// The reason why a request left the queue without being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    Expired,
    Abandoned,
}

/// A place in the order of execution: level by level, timely requests first.
#[derive(Clone, Copy, Default)]
pub(super) struct QueueCursor {
    level: u64,
    is_late: bool,
    index: usize,
}

impl QueueCursor {
    pub fn advance(&mut self) {
        self.index += 1;
    }

    /// Returns true if both are among requests of one level, timely or late.
    pub fn is_in_list_of(&self, other: Self) -> bool {
        (self.level, self.is_late) == (other.level, other.is_late)
    }

    /// Moves to the late requests of the level, or to the next level. Returns false after the last possible level.
    fn pass_on(&mut self) -> bool {
        let next = match self.is_late {
            true => self.level.checked_add(1),
            false => Some(self.level),
        };
        let is_late = !self.is_late;
        *self = Self { level: next.unwrap_or(self.level), is_late, index: 0 };
        next.is_some()
    }
}

/// Waiting requests in the order of execution.
pub(super) struct PriorityQueue<T> {
    levels: Levels<T>,
    len: usize,
    item_count: u64,
    dropped: Vec<(T, DropReason)>,
}

impl<T: QueueEntry> PriorityQueue<T> {
    /// `None` is one level without limits. `turn_items` is that of [`FairList`](super::fair_list::FairList) within each level.
    pub fn new(config: Option<&DynamicBatching>, turn_items: u64) -> Self {
        let levels = Levels::new(config, turn_items);
        Self { levels, len: 0, item_count: 0, dropped: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the sum of the batch sizes of all waiting requests.
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    pub fn has_priorities(&self) -> bool {
        self.levels.has_several()
    }

    pub fn has_timeouts(&self) -> bool {
        self.levels.policies().any(|policy| policy.default_timeout.is_some())
    }

    /// Returns true if requests may fail because they waited too long.
    pub fn rejects_late(&self) -> bool {
        self.levels.policies().any(levels::rejects)
    }

    /// Appends a request and returns when it expires. Returns the request if its level is full.
    pub fn push(&mut self, value: T) -> Result<Option<Instant>, T> {
        let placement = value.placement();
        let level = self.levels.of_priority(placement.priority);
        let limit = level.policy.max_queue_size as usize;
        if limit > 0 && level.len() >= limit {
            return Err(value);
        }
        self.len += 1;
        self.item_count += value.item_count();
        let expires_at = expiry(&level.policy, value.queued_at(), placement.timeout);
        level.timely.push_back(Entry { value, expires_at });
        Ok(expires_at)
    }

    /// Puts a request that was taken back to the front. It does not expire any more.
    pub fn push_front(&mut self, value: T) {
        self.len += 1;
        self.item_count += value.item_count();
        self.levels.first().timely.push_front(Entry { value, expires_at: None });
    }

    /// Moves `cursor` to the next request that may be executed, in a later level if necessary. Returns false if there is none.
    /// Expired or abandoned requests on the way are dropped, or put at the end of their level, as its policy requires.
    ///
    /// Only requests at the cursor are checked, so a long queue costs no more than a short one.
    pub fn skip_unservable(&mut self, cursor: &mut QueueCursor, now: Instant) -> bool {
        loop {
            let Some((number, level)) = self.levels.next(cursor.level) else { return false };
            if number != cursor.level {
                *cursor = QueueCursor { level: number, is_late: false, index: 0 };
            }
            let entries = level.list(cursor.is_late);
            let Some(entry) = entries.get(cursor.index) else {
                if !cursor.pass_on() {
                    return false;
                }
                continue;
            };
            let is_expired = !cursor.is_late && entry.expires_at.is_some_and(|t| t <= now);
            if entry.value.is_abandoned() {
                self.drop_at(*cursor, DropReason::Abandoned);
            } else if !is_expired {
                entries.settle(cursor.index);
                return true;
            } else if levels::rejects(&level.policy) {
                self.drop_at(*cursor, DropReason::Expired);
            } else if let Some(entry) = level.timely.remove(cursor.index) {
                level.late.push_back(Entry { expires_at: None, ..entry });
            }
        }
    }

    pub fn at(&self, cursor: QueueCursor) -> Option<&Entry<T>> {
        let level = self.levels.get(cursor.level)?;
        let entries = if cursor.is_late { &level.late } else { &level.timely };
        entries.get(cursor.index)
    }

    /// Moves the request at `cursor`, which can be executed, forward by this many places in its list.
    pub fn bring_forward(&mut self, cursor: QueueCursor, places: usize) {
        if places == 0 {
            return;
        }
        let Some((number, level)) = self.levels.next(cursor.level) else { return };
        if number == cursor.level {
            level.list(cursor.is_late).bring_forward(cursor.index, places);
        }
    }

    /// Returns the request that is executed next, as far as is known without a clock.
    pub fn front(&self) -> Option<&T> {
        let mut levels = self.levels.iter();
        let entry = levels.find_map(|level| level.timely.first().or_else(|| level.late.first()));
        entry.map(|e| &e.value)
    }

    /// Removes the first `count` requests.
    pub fn take(&mut self, count: usize) -> Vec<T> {
        let mut taken = Vec::with_capacity(count.min(self.len));
        let mut next = Some(levels::FIRST);
        while let Some((number, level)) = next.and_then(|next| self.levels.next(next)) {
            for entries in [&mut level.timely, &mut level.late] {
                entries.take(count - taken.len(), &mut taken);
            }
            self.levels.release(number);
            next = number.checked_add(1).filter(|_| taken.len() < count);
        }
        self.removed(&taken);
        taken
    }

    /// Removes all requests whose clients have gone, in any place. Those found by [`PriorityQueue::skip_unservable`] are left
    /// to its caller.
    pub fn take_abandoned(&mut self) -> Vec<T> {
        let mut abandoned = Vec::new();
        self.levels.for_each(|level| {
            for list in [&mut level.timely, &mut level.late] {
                list.remove_where(|entry| entry.value.is_abandoned(), &mut abandoned);
            }
        });
        self.removed(&abandoned);
        abandoned
    }

    /// Removes all requests that fail because they waited too long, in any place. Also returns when the next one may fail.
    pub fn take_expired(&mut self, now: Instant) -> (Vec<T>, Option<Instant>) {
        let (mut expired, mut next) = (Vec::new(), None);
        self.levels.for_each(|level| {
            if levels::rejects(&level.policy) {
                let is_expired = |entry: &Entry<T>| entry.expires_at.is_some_and(|t| t <= now);
                level.timely.remove_where(is_expired, &mut expired);
                next = [next, level.timely.next_expiry()].into_iter().flatten().min();
            }
        });
        self.removed(&expired);
        (expired, next)
    }

    /// Removes the requests that [`PriorityQueue::skip_unservable`] dropped; the caller must answer each.
    pub fn take_dropped(&mut self) -> Vec<(T, DropReason)> {
        std::mem::take(&mut self.dropped)
    }

    fn removed(&mut self, requests: &[T]) {
        self.len -= requests.len();
        self.item_count -= requests.iter().map(T::item_count).sum::<u64>();
    }

    fn drop_at(&mut self, cursor: QueueCursor, reason: DropReason) {
        let Some((number, level)) = self.levels.next(cursor.level) else { return };
        if let Some(entry) = level.list(cursor.is_late).remove(cursor.index) {
            self.len -= 1;
            self.item_count -= entry.value.item_count();
            self.dropped.push((entry.value, reason));
        }
        self.levels.release(number);
    }
}

#[cfg(test)]
impl<T: QueueEntry> PriorityQueue<T> {
    pub fn existing_levels(&self) -> usize {
        self.levels.existing_count()
    }
}

/// Returns when a request expires. It may only shorten the time-out of its level, and only if that is allowed.
fn expiry(policy: &QueuePolicy, queued_at: Instant, wanted: Option<Duration>) -> Option<Instant> {
    let default = policy.default_timeout?;
    let timeout = match wanted {
        Some(wanted) if policy.allows_timeout_override && !wanted.is_zero() => wanted.min(default),
        _ => default,
    };
    queued_at.checked_add(timeout)
}

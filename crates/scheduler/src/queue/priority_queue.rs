//! The order in which requests are served: by priority level, then clients in turn, then in the order of arrival.

use std::time::{Duration, Instant};

use galatea_config::{DynamicBatching, QueuePolicy, TimeoutAction};

use super::{
    fair_list::{Entry, FairList},
    queued::Queued,
};

/// Why a request left the queue without being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DropReason {
    Expired,
    Abandoned,
}

/// Requests of one priority. Those that outlived a `DELAY` timeout come after all timely ones.
struct Level<T> {
    policy: QueuePolicy,
    timely: FairList<T>,
    late: FairList<T>,
}

/// A place in the order in which requests are served: level by level, timely ones first.
#[derive(Clone, Copy, Default)]
pub(super) struct Cursor {
    level: usize,
    is_late: bool,
    index: usize,
}

impl Cursor {
    pub fn advance(&mut self) {
        self.index += 1;
    }
}

/// Waiting requests in the order in which they are served.
pub(super) struct PriorityQueue<T> {
    levels: Vec<Level<T>>,
    default_level: usize,
    len: usize,
    item_count: u64,
    dropped: Vec<(T, DropReason)>,
}

impl<T: Queued> PriorityQueue<T> {
    /// One level without limits.
    pub fn plain() -> Self {
        Self::with_policies(vec![QueuePolicy::default()], 0, 1)
    }

    /// `turn_items`: as for [`FairList`], within each level.
    pub fn from_config(config: &DynamicBatching, turn_items: u64) -> Self {
        let default = config.default_queue_policy;
        let policies = match config.priority_levels {
            0 => vec![default],
            n => (1..=n)
                .map(|l| config.priority_queue_policies.get(&l).copied().unwrap_or(default))
                .collect(),
        };
        let default_level = config.default_priority_level.saturating_sub(1);
        Self::with_policies(policies, usize::try_from(default_level).unwrap_or(0), turn_items)
    }

    fn with_policies(policies: Vec<QueuePolicy>, default_level: usize, turn_items: u64) -> Self {
        let list = || FairList::new(turn_items);
        let levels = policies
            .into_iter()
            .map(|policy| Level { policy, timely: list(), late: list() })
            .collect();
        Self { levels, default_level, len: 0, item_count: 0, dropped: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Sum of the batch sizes of all waiting requests.
    pub fn item_count(&self) -> u64 {
        self.item_count
    }

    pub fn has_priorities(&self) -> bool {
        self.levels.len() > 1
    }

    pub fn has_timeouts(&self) -> bool {
        self.levels.iter().any(|l| l.policy.default_timeout.is_some())
    }

    /// Appends a request and returns when it expires; a full level gives it back.
    pub fn push(&mut self, value: T) -> Result<Option<Instant>, T> {
        let placement = value.placement();
        let level = match usize::try_from(placement.priority) {
            Ok(p) if (1..=self.levels.len()).contains(&p) => p - 1,
            _ => self.default_level,
        };
        let Some(level) = self.levels.get_mut(level) else {
            return Err(value);
        };
        let limit = level.policy.max_queue_size as usize;
        if limit > 0 && level.timely.len() + level.late.len() >= limit {
            return Err(value);
        }
        self.len += 1;
        self.item_count += value.item_count();
        let expires_at = expiry(&level.policy, value.queued_at(), placement.timeout);
        level.timely.push_back(Entry { value, expires_at });
        Ok(expires_at)
    }

    /// Puts a request that was taken back to where it was: before all others. It does not expire any more.
    pub fn push_front(&mut self, value: T) {
        let Some(level) = self.levels.first_mut() else { return };
        self.len += 1;
        self.item_count += value.item_count();
        level.timely.push_front(Entry { value, expires_at: None });
    }

    /// Moves `cursor` on to the next request that may be executed, if need be over to the next level; false
    /// when there is none. Requests on the way that expired or were abandoned are dropped, or put at the end
    /// of their level, as its policy requires.
    ///
    /// Only requests at the cursor are looked at, so that a long queue costs no more than a short one.
    pub fn skip_unservable(&mut self, cursor: &mut Cursor, now: Instant) -> bool {
        loop {
            let Some(level) = self.levels.get_mut(cursor.level) else {
                return false;
            };
            let entries = if cursor.is_late { &mut level.late } else { &mut level.timely };
            let Some(entry) = entries.get(cursor.index) else {
                *cursor = Cursor {
                    level: cursor.level + usize::from(cursor.is_late),
                    is_late: !cursor.is_late,
                    index: 0,
                };
                continue;
            };
            let is_expired = !cursor.is_late && entry.expires_at.is_some_and(|t| t <= now);
            if entry.value.is_abandoned() {
                self.drop_at(*cursor, DropReason::Abandoned);
            } else if !is_expired {
                entries.settle(cursor.index);
                return true;
            } else if level.policy.timeout_action == TimeoutAction::Reject {
                self.drop_at(*cursor, DropReason::Expired);
            } else if let Some(entry) = level.timely.remove(cursor.index) {
                level.late.push_back(Entry { expires_at: None, ..entry });
            }
        }
    }

    pub fn at(&self, cursor: Cursor) -> Option<&Entry<T>> {
        let level = self.levels.get(cursor.level)?;
        let entries = if cursor.is_late { &level.late } else { &level.timely };
        entries.get(cursor.index)
    }

    /// The request that is served next, as far as is known without a clock.
    pub fn front(&self) -> Option<&T> {
        let mut levels = self.levels.iter();
        let entry = levels.find_map(|level| level.timely.first().or_else(|| level.late.first()));
        entry.map(|e| &e.value)
    }

    /// Removes the first `count` requests.
    pub fn take(&mut self, count: usize) -> Vec<T> {
        let mut taken = Vec::with_capacity(count.min(self.len));
        for level in &mut self.levels {
            for entries in [&mut level.timely, &mut level.late] {
                entries.take(count - taken.len(), &mut taken);
            }
        }
        self.len -= taken.len();
        self.item_count -= taken.iter().map(T::item_count).sum::<u64>();
        taken
    }

    /// Removes all requests that nobody waits for, wherever they stand; those found by
    /// [`PriorityQueue::skip_unservable`] are left to who called that.
    pub fn take_abandoned(&mut self) -> Vec<T> {
        let mut abandoned = Vec::new();
        for level in &mut self.levels {
            level.timely.take_abandoned(&mut abandoned);
            level.late.take_abandoned(&mut abandoned);
        }
        self.len -= abandoned.len();
        self.item_count -= abandoned.iter().map(T::item_count).sum::<u64>();
        abandoned
    }

    /// Removes what [`PriorityQueue::skip_unservable`] dropped: each must be answered.
    pub fn take_dropped(&mut self) -> Vec<(T, DropReason)> {
        std::mem::take(&mut self.dropped)
    }

    fn drop_at(&mut self, cursor: Cursor, reason: DropReason) {
        let Some(level) = self.levels.get_mut(cursor.level) else { return };
        let entries = if cursor.is_late { &mut level.late } else { &mut level.timely };
        if let Some(entry) = entries.remove(cursor.index) {
            self.len -= 1;
            self.item_count -= entry.value.item_count();
            self.dropped.push((entry.value, reason));
        }
    }
}

/// A request may only shorten the timeout its level has, and only where that is allowed.
fn expiry(policy: &QueuePolicy, queued_at: Instant, wanted: Option<Duration>) -> Option<Instant> {
    let default = policy.default_timeout?;
    let timeout = match wanted {
        Some(wanted) if policy.allows_timeout_override && !wanted.is_zero() => wanted.min(default),
        _ => default,
    };
    queued_at.checked_add(timeout)
}

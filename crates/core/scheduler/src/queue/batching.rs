//! Decides how many of the first requests are executed together, and when.

use std::time::{Duration, Instant};

use galatea_config::{DynamicBatching, ModelConfig, Scheduling, SequenceStrategy};

use super::{
    join_rules::Extent,
    priority_queue::{PriorityQueue, QueueCursor},
    queue_entry::QueueEntry,
};

/// The largest number of requests that a decision passes over, in queues of any length.
const MOST_LOOK_AHEAD: usize = 64;

/// The rules by which requests are joined into batches.
#[derive(Clone, Debug)]
pub(super) struct BatchRules {
    /// If false, every request is executed alone.
    pub joins_requests: bool,
    pub max_items: u64,
    /// The preferred sizes, ascending, never empty.
    preferred: Vec<u64>,
    delay: Duration,
    /// The number of requests that cannot join a batch and may be passed over to find some that can.
    look_ahead: usize,
}

/// The next action of an idle instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Executes this many of the first requests together.
    Take(usize),
    Wait(GrowingBatch),
    Empty,
}

/// A batch that may still grow. Decide again at `until`, or earlier if [`GrowingBatch::is_ended_by`] is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrowingBatch {
    pub until: Instant,
    /// The number of queued items at which to decide again.
    pub enough_items: u64,
}

/// The time at which an idle instance asks for work, and what it knows.
#[derive(Clone, Copy)]
pub(super) struct PullRequest {
    pub now: Instant,
    /// When the delay began; `None` is when the oldest request of the batch was queued.
    pub delay_began: Option<Instant>,
    /// True if no more requests will come, so that waiting gains nothing.
    pub is_flushing: bool,
}

/// The batch that would be executed if no more requests came.
struct Pending {
    requests: usize,
    items: u64,
    /// The number of items of requests that were passed over.
    passed_over: u64,
    /// The requests behind passed-over ones, each with the number of places it must move forward.
    brought: Vec<(QueueCursor, usize)>,
    oldest: Instant,
    nearest_expiry: Option<Instant>,
    /// The number of requests up to the largest preferred size reached.
    marked: Option<usize>,
    /// True if no further request can join.
    is_complete: bool,
}

#[cfg(test)]
impl PullRequest {
    /// More requests may come, and the delay runs since the oldest was queued.
    pub fn at(now: Instant) -> Self {
        Self { now, delay_began: None, is_flushing: false }
    }
}

impl BatchRules {
    pub fn from_config(config: &ModelConfig) -> Self {
        let max_items = u64::from(config.max_batch_size());
        match config.scheduling() {
            _ if !config.has_batching() => Self::one_by_one(),
            Scheduling::Dynamic(dynamic) => {
                // With mixed lengths, requests of one length are not next to each other in the queue.
                let looks = config.padding().is_some() && !dynamic.preserves_ordering;
                let look_ahead = if looks { MOST_LOOK_AHEAD } else { 0 };
                Self::dynamic(dynamic, max_items).looking_ahead(look_ahead)
            }
            Scheduling::Sequence(batching) => match &batching.strategy {
                SequenceStrategy::Oldest { preferred_batch_sizes, max_queue_delay, .. } => {
                    Self::preferring(preferred_batch_sizes, max_items, *max_queue_delay)
                }
                SequenceStrategy::Direct { .. } => Self::one_by_one(),
            },
            Scheduling::Direct | Scheduling::Ensemble(_) => Self::one_by_one(),
        }
    }

    /// Returns rules that pass over up to `look_ahead` requests to find some that join a batch.
    pub fn looking_ahead(self, look_ahead: usize) -> Self {
        Self { look_ahead, ..self }
    }

    pub fn dynamic(config: &DynamicBatching, max_items: u64) -> Self {
        Self::preferring(&config.preferred_batch_sizes, max_items, config.max_queue_delay)
    }

    fn preferring(sizes: &[u32], max_items: u64, delay: Duration) -> Self {
        let mut preferred: Vec<_> = sizes.iter().map(|&n| u64::from(n)).collect();
        if preferred.is_empty() {
            preferred.push(max_items);
        }
        preferred.sort_unstable();
        Self { joins_requests: true, max_items, preferred, delay, look_ahead: 0 }
    }

    fn one_by_one() -> Self {
        let (preferred, delay) = (vec![1], Duration::ZERO);
        Self { joins_requests: false, max_items: 1, preferred, delay, look_ahead: 0 }
    }

    pub fn has_delay(&self) -> bool {
        !self.delay.is_zero()
    }

    fn largest_preferred(&self) -> u64 {
        self.preferred.last().copied().unwrap_or(self.max_items)
    }

    /// Returns the size to wait for if there are `items`.
    fn next_preferred(&self, items: u64) -> u64 {
        self.preferred.iter().copied().find(|&n| n > items).unwrap_or(self.max_items)
    }
}

impl GrowingBatch {
    /// Returns true if a request that was just queued ends the wait. `can_join` is true if it may join the batch.
    pub fn is_ended_by(
        &self,
        queued_items: u64,
        expires_at: Option<Instant>,
        can_join: bool,
    ) -> bool {
        queued_items >= self.enough_items || !can_join || expires_at.is_some_and(|t| t < self.until)
    }
}

/// Decides on the next batch of `queue`, which holds no request that is being executed.
///
/// The queue is walked in order until a request would make the batch too large or cannot join it. The largest preferred
/// size reached on the way is executed. If none is reached, all collected requests are executed: at once without a
/// delay, else when the delay is over.
pub(super) fn next_batch<T: QueueEntry>(
    queue: &mut PriorityQueue<T>,
    rules: &BatchRules,
    joins: impl Fn(&T, &T, &mut Extent) -> bool,
    turn: PullRequest,
) -> Decision {
    if !rules.joins_requests {
        let has_request = queue.skip_unservable(&mut QueueCursor::default(), turn.now);
        return if has_request { Decision::Take(1) } else { Decision::Empty };
    }
    let pending = gather(queue, rules, joins, turn.now);
    let decision = decide(&pending, rules, turn);
    if let Decision::Take(count) = decision {
        pending.bring_forward(queue, count);
    }
    decision
}

fn decide(pending: &Pending, rules: &BatchRules, turn: PullRequest) -> Decision {
    if pending.requests == 0 {
        return Decision::Empty;
    }
    let PullRequest { now, delay_began, is_flushing } = turn;
    let latest = delay_began.unwrap_or(pending.oldest).checked_add(rules.delay).unwrap_or(now);
    let is_overdue = rules.has_delay() && now >= latest;
    match pending.marked {
        Some(marked) if !is_overdue => return Decision::Take(marked),
        _ => {}
    }
    let can_grow = !pending.is_complete && pending.items < rules.largest_preferred();
    if !can_grow || is_overdue || !rules.has_delay() || is_flushing {
        return Decision::Take(pending.requests);
    }
    Decision::Wait(GrowingBatch {
        until: pending.nearest_expiry.map_or(latest, |t| t.min(latest)),
        enough_items: pending.passed_over + rules.next_preferred(pending.items),
    })
}

/// Walks the queue in order and collects requests for one batch. If the rules allow it, requests behind some that cannot
/// join are brought forward. The first request of the queue is always in the batch.
fn gather<T: QueueEntry>(
    queue: &mut PriorityQueue<T>,
    rules: &BatchRules,
    joins: impl Fn(&T, &T, &mut Extent) -> bool,
    now: Instant,
) -> Pending {
    let mut pending = Pending::empty(now);
    let mut cursor = QueueCursor::default();
    let mut first: Option<QueueCursor> = None;
    let (mut extent, mut passed_over) = (Extent::default(), 0);
    while queue.skip_unservable(&mut cursor, now) {
        let Some(entry) = queue.at(cursor) else { break };
        let items = entry.value.item_count();
        if passed_over > 0 && first.is_some_and(|first| !first.is_in_list_of(cursor)) {
            // Requests of the next list may have waited longer than those passed over, so the batch waits for none of them.
            pending.is_complete = true;
            break;
        }
        if let Some(first) = first.and_then(|c| queue.at(c)) {
            let grown = pending.items + items;
            if grown > rules.max_items {
                pending.is_complete = true;
                break;
            }
            if !joins(&first.value, &entry.value, &mut extent) {
                pending.is_complete = passed_over >= rules.look_ahead;
                if pending.is_complete {
                    break;
                }
                passed_over += 1;
                pending.pass_over(items, entry.value.queued_at());
                cursor.advance();
                continue;
            }
            // Growing would only carry it past every preferred size.
            if grown > rules.largest_preferred() && pending.marked.is_none() {
                pending.marked = Some(pending.requests);
            }
        }
        first.get_or_insert(cursor);
        pending.add(items, entry.value.queued_at(), entry.expires_at);
        pending.brought.extend((passed_over > 0).then_some((cursor, passed_over)));
        if rules.preferred.binary_search(&pending.items).is_ok() {
            pending.marked = Some(pending.requests);
        }
        cursor.advance();
    }
    pending
}

impl Pending {
    fn empty(now: Instant) -> Self {
        Self {
            requests: 0,
            items: 0,
            passed_over: 0,
            brought: Vec::new(),
            oldest: now,
            nearest_expiry: None,
            marked: None,
            is_complete: false,
        }
    }

    /// Moves the taken requests to the front. The first ones move first, so that the others stay where they were found.
    fn bring_forward<T: QueueEntry>(&self, queue: &mut PriorityQueue<T>, count: usize) {
        let in_place = self.requests - self.brought.len();
        let taken = count.saturating_sub(in_place);
        for (cursor, places) in self.brought.iter().take(taken) {
            queue.bring_forward(*cursor, *places);
        }
    }

    /// Counts a request that is passed over. It must not wait longer for this batch than for its own.
    fn pass_over(&mut self, items: u64, queued_at: Instant) {
        self.passed_over += items;
        self.oldest = self.oldest.min(queued_at);
    }

    fn add(&mut self, items: u64, queued_at: Instant, expires_at: Option<Instant>) {
        self.requests += 1;
        self.items += items;
        self.oldest = self.oldest.min(queued_at);
        self.nearest_expiry = [self.nearest_expiry, expires_at].into_iter().flatten().min();
    }
}

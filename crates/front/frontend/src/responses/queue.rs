//! The bounded queue that responders fill and the receiver empties.

use std::{collections::VecDeque, task::Waker};

use galatea_types::{MemoryBudget, MemoryReservation, Response};

use super::sync::{Arc, AtomicBool, AtomicUsize, LockExt, Mutex, Ordering};

/// The approximate memory of a response besides its tensors, so that empty responses count too.
const RESPONSE_OVERHEAD: usize = 1 << 10;

/// A backlog up to this size does not count to the budget. A client that reads its responses seldom has more.
const UNCOUNTED: usize = 64 << 10;

/// The request of a receiver that a response belongs to. Each kind counts its own requests from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKey {
    /// A request with one answer, sent in the order of the requests. Only the next one in order wakes the receiver's task.
    ///
    /// These do not count towards the bound, because there is one per request. The server reads no requests from a client
    /// that does not read responses.
    Ordered(u64),
    /// A request with any number of answers at any time.
    Unordered(u64),
}

/// A response with the key of its request.
#[derive(Debug)]
pub struct KeyedResponse {
    /// The key of the request.
    pub key: ResponseKey,
    /// The response of the model.
    pub response: Response,
}

impl KeyedResponse {
    /// Returns the bytes that it takes of the receiver's bound until they are released: its tensors and a small overhead.
    pub fn weight(&self) -> usize {
        if matches!(self.key, ResponseKey::Ordered(_)) {
            return 0;
        }
        let outputs = match &self.response.result {
            Some(Ok(response)) => response.byte_size(),
            _ => 0,
        };
        RESPONSE_OVERHEAD + outputs
    }
}

/// The treatment of waiting responses when the bound is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOverflow {
    /// Waiting responses can still be received.
    Deliver,
    /// Waiting responses are dropped at once.
    Discard,
}

/// The error when more bytes of responses wait than the bound or the server's memory allows, because the client does
/// not read them. The queue accepts none from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// A queue that any thread fills and the task of one connection empties.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// The queue accepts no more responses: the receiver is gone or the bound was exceeded.
    is_closed: AtomicBool,
    /// Bytes of the responses that wait or are not yet sent.
    backlog: AtomicUsize,
    /// The most bytes that may wait.
    limit: usize,
    on_overflow: OnOverflow,
    budget: std::sync::Arc<MemoryBudget>,
    /// The backlog in the budget, once it is more than [`UNCOUNTED`].
    counted: Mutex<MemoryReservation>,
}

#[derive(Debug, Default)]
struct State {
    responses: VecDeque<KeyedResponse>,
    /// The ordered request whose response can be sent next.
    awaited: u64,
    /// The waker of the receiver's task, while it waits.
    waker: Option<Waker>,
    has_overflowed: bool,
}

impl Queue {
    pub fn new(
        limit: usize,
        on_overflow: OnOverflow,
        budget: &std::sync::Arc<MemoryBudget>,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            is_closed: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
            limit,
            on_overflow,
            budget: budget.clone(),
            counted: Mutex::new(budget.reservation()),
        })
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Accepts no more responses and drops the waiting ones.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let left = std::mem::take(&mut self.state.lock_unpoisoned().responses);
        drop(left);
        self.counted.lock_unpoisoned().shrink_to(0);
    }

    /// Appends a response, unless the queue is closed, and wakes the receiver's task if it can send it.
    pub fn push(&self, response: KeyedResponse) -> Result<(), Overflow> {
        if self.is_closed() {
            return Ok(());
        }
        let weight = response.weight();
        if !self.admit(weight) {
            self.release(weight);
            self.overflow();
            return Err(Overflow);
        }
        let mut state = self.state.lock_unpoisoned();
        let can_be_sent = match response.key {
            ResponseKey::Ordered(number) => number == state.awaited,
            ResponseKey::Unordered(_) => true,
        };
        state.responses.push_back(response);
        let waker = if can_be_sent { state.waker.take() } else { None };
        drop(state);
        wake(waker);
        Ok(())
    }

    /// Counts the bytes and returns `true` if there is room for them. A response of any size fits into an empty backlog.
    fn admit(&self, weight: usize) -> bool {
        let before = self.backlog.fetch_add(weight, Ordering::Relaxed);
        let backlog = before.saturating_add(weight);
        if backlog > UNCOUNTED {
            self.count_backlog();
            if before > UNCOUNTED && self.budget.is_exceeded() {
                return false;
            }
        }
        before == 0 || backlog <= self.limit
    }

    fn count_backlog(&self) {
        let mut counted = self.counted.lock_unpoisoned();
        let backlog = Some(self.backlog.load(Ordering::Relaxed)).filter(|&n| n > UNCOUNTED);
        let backlog = backlog.unwrap_or(0);
        match backlog.checked_sub(counted.bytes()) {
            Some(more) => counted.grow(more),
            None => counted.shrink_to(backlog),
        }
    }

    pub fn release(&self, weight: usize) {
        let before = self.backlog.fetch_sub(weight, Ordering::Relaxed);
        if before > UNCOUNTED {
            self.count_backlog();
        }
    }

    fn overflow(&self) {
        let mut state = self.state.lock_unpoisoned();
        state.has_overflowed = true;
        let waker = state.waker.take();
        drop(state);
        match self.on_overflow {
            OnOverflow::Deliver => self.is_closed.store(true, Ordering::Relaxed),
            OnOverflow::Discard => self.close(),
        }
        wake(waker);
    }

    /// Moves all responses to `into`, which is empty. If there are none, `waker` is called once one can be sent.
    /// `awaited` is the next ordered request.
    pub fn take_all(
        &self,
        awaited: u64,
        waker: &Waker,
        into: &mut VecDeque<KeyedResponse>,
    ) -> Result<(), Overflow> {
        let mut state = self.state.lock_unpoisoned();
        if state.responses.is_empty() {
            if state.has_overflowed {
                return Err(Overflow);
            }
            state.awaited = awaited;
            state.waker = Some(waker.clone());
        }
        std::mem::swap(&mut state.responses, into);
        Ok(())
    }
}

/// Call this without the lock, which the woken task needs.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

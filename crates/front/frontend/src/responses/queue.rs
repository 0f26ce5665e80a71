//! The queue that responders fill and the receiver empties, with its bound.

use std::{collections::VecDeque, task::Waker};

use galatea_types::{MemoryBudget, MemoryReservation, Response};

use super::sync::{Arc, AtomicBool, AtomicUsize, LockExt, Mutex, Ordering};

/// What a response takes besides its tensors, about; so that empty ones are counted too.
const RESPONSE_OVERHEAD: usize = 1 << 10;

/// A backlog up to this size is neither counted to the budget nor cut off for it: a client that reads has seldom more.
const UNCOUNTED: usize = 64 << 10;

/// Which request of a receiver a response belongs to: each kind counts its own from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseKey {
    /// Answered once, in the order of the requests. Only the one that is next in order wakes the receiver's task.
    ///
    /// These do not count towards the bound: there are no more of them than requests, and requests are not read from a
    /// client that does not read responses.
    Ordered(u64),
    /// Answered any number of times, at any time.
    Unordered(u64),
}

/// A response, and the request it belongs to.
#[derive(Debug)]
pub struct KeyedResponse {
    /// Of the request.
    pub key: ResponseKey,
    /// What the model made.
    pub response: Response,
}

impl KeyedResponse {
    /// The bytes that it takes of the receiver's bound until they are released: those of its tensors and a little more.
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

/// What becomes of the responses that wait when the bound is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnOverflow {
    /// They can still be received.
    Deliver,
    /// They are dropped at once.
    Discard,
}

/// More bytes of responses wait than the bound allows, or than the server has for them: the client does not read them.
/// None are taken any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Filled by any thread, emptied by the task of one connection.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Nothing is taken any more: the receiver is gone or the bound was passed.
    is_closed: AtomicBool,
    /// Bytes of the responses that wait or are not yet sent.
    backlog: AtomicUsize,
    /// Most bytes that may wait.
    limit: usize,
    on_overflow: OnOverflow,
    budget: std::sync::Arc<MemoryBudget>,
    /// The backlog, once it is more than [`UNCOUNTED`].
    counted: Mutex<MemoryReservation>,
}

#[derive(Debug, Default)]
struct State {
    responses: VecDeque<KeyedResponse>,
    /// The ordered request whose response can be sent next.
    awaited: u64,
    /// Of the receiver's task, while it waits.
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

    /// Takes no more responses and drops those that wait.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let left = std::mem::take(&mut self.state.lock_unpoisoned().responses);
        drop(left);
        self.counted.lock_unpoisoned().shrink_to(0);
    }

    /// Appends a response, unless the queue is closed, and wakes the receiver's task where it can send it.
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

    /// Counts the bytes; whether there is room for them. A response of any size fits into an empty backlog.
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

    /// Moves all responses to `into`, which is empty. Where there are none `waker` is called once one of them can be
    /// sent; `awaited` is the ordered request that is next.
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

/// Without the lock, which the woken task wants.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

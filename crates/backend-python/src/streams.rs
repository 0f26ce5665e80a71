//! Requests that a worker works on, and the ways back of those it answers through a response sender.

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use galatea_backend::ResponseSender;
use galatea_types::{Cancellation, Error, Parameters, Result, Tensor};

/// What a response holds.
pub(crate) type Answer = Result<(Vec<Tensor>, Parameters)>;

/// A request whose answers may come through `side`.
pub(crate) struct Pending {
    pub cancellation: Cancellation,
    /// The outputs asked for.
    pub outputs: Arc<[Arc<str>]>,
    way: Mutex<Way>,
}

enum Way {
    /// Not known yet whether a sender answers: what came is kept.
    Open(Vec<(Option<Answer>, bool)>),
    Sender(ResponseSender),
    Closed,
}

impl Pending {
    pub fn new(cancellation: Cancellation, outputs: Arc<[Arc<str>]>) -> Self {
        Self { cancellation, outputs, way: Mutex::new(Way::Open(Vec::new())) }
    }

    /// Lets the sender tell what came so far, and what comes. True: that was all.
    fn attach(&self, mut sender: ResponseSender) -> bool {
        let mut way = self.lock();
        let Way::Open(early) = std::mem::replace(&mut *way, Way::Closed) else { return true };
        for (answer, is_final) in early {
            if is_final {
                sender.finish(answer);
                return true;
            }
            answer.into_iter().for_each(|answer| sender.send(answer));
        }
        *way = Way::Sender(sender);
        false
    }

    fn respond(&self, answer: Option<Answer>, is_final: bool) {
        let mut way = self.lock();
        match &mut *way {
            Way::Open(early) => early.push((answer, is_final)),
            Way::Closed => {}
            Way::Sender(sender) if !is_final => {
                answer.into_iter().for_each(|answer| sender.send(answer));
            }
            Way::Sender(_) => {
                if let Way::Sender(sender) = std::mem::replace(&mut *way, Way::Closed) {
                    sender.finish(answer);
                }
            }
        }
    }

    /// The one answer of a request that nobody attached a sender to, once all of it is there.
    fn take_answer(&self) -> Option<Answer> {
        let mut way = self.lock();
        let Way::Open(early) = &mut *way else { return Some(Err(unanswered())) };
        if !early.iter().any(|(_, is_final)| *is_final) {
            return None;
        }
        let first = early.drain(..).find_map(|(answer, _)| answer);
        *way = Way::Closed;
        Some(first.unwrap_or_else(|| Err(unanswered())))
    }

    fn is_cancelled(&self) -> bool {
        let way = self.lock();
        self.cancellation.is_cancelled()
            || matches!(&*way, Way::Sender(sender) if sender.is_cancelled())
    }

    fn is_attached(&self) -> bool {
        matches!(&*self.lock(), Way::Sender(_))
    }

    fn lock(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unanswered() -> Error {
    Error::internal("the model ended the request without a response")
}

/// By key.
#[derive(Default)]
pub(crate) struct Streams {
    all: Mutex<HashMap<u64, Arc<Pending>>>,
    changed: Condvar,
}

impl Streams {
    pub fn add(&self, key: u64, pending: Pending) {
        self.lock().insert(key, Arc::new(pending));
    }

    pub fn get(&self, key: u64) -> Option<Arc<Pending>> {
        self.lock().get(&key).cloned()
    }

    /// The request is answered, or will be otherwise.
    pub fn remove(&self, key: u64) {
        let mut all = self.lock();
        all.remove(&key);
        self.changed.notify_all();
    }

    pub fn attach(&self, key: u64, sender: ResponseSender) {
        // Without an entry the sender is dropped, which tells its client.
        let is_over = self.get(key).is_none_or(|pending| pending.attach(sender));
        if is_over {
            self.remove(key);
        }
    }

    /// Waits for the answer of a request whose batch nobody can leave: sent through a response sender, or made
    /// by the worker's end.
    pub fn wait_for_answer(&self, key: u64) -> Answer {
        let Some(pending) = self.get(key) else { return Err(unanswered()) };
        let mut all = self.lock();
        loop {
            if let Some(answer) = pending.take_answer() {
                all.remove(&key);
                return answer;
            }
            all = self.changed.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A response that came through `side`. One for a request that is answered already is nobody's.
    pub fn respond(&self, key: u64, answer: Option<Answer>, is_final: bool) {
        let Some(pending) = self.get(key) else { return };
        pending.respond(answer, is_final);
        let is_waited_for = matches!(&*pending.lock(), Way::Open(_));
        match is_final {
            true if is_waited_for => self.tell(),
            true => self.remove(key),
            false => {}
        }
    }

    pub fn fail(&self, key: u64, error: &Error) {
        if let Some(pending) = self.get(key) {
            pending.respond(Some(Err(error.clone())), true);
            self.remove(key);
        }
    }

    /// Under the lock, or a waiter could look just before and sleep just after.
    fn tell(&self) {
        let _all = self.lock();
        self.changed.notify_all();
    }

    pub fn fail_all(&self, error: &Error) {
        let keys: Vec<u64> = self.lock().keys().copied().collect();
        keys.into_iter().for_each(|key| self.fail(key, error));
    }

    /// False also for a request that is answered.
    pub fn is_cancelled(&self, key: u64) -> bool {
        self.get(key).is_some_and(|pending| pending.is_cancelled())
    }

    /// Waits until no response sender is open any more, or for as long as `limit`.
    pub fn wait_until_closed(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut all = self.lock();
        while all.values().any(|pending| pending.is_attached()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(all, left);
            all = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Pending>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

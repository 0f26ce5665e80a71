//! The rate limiter: limits executions of all models that share resources to the supply of those resources.
//!
//! [`PermitLedger`] decides who is next. The supply is what the operator provides, or the largest demand if nothing is
//! given. An instance thread with something to execute asks for a *permit* under the lock of its queue. Without one it
//! sleeps, and the requests stay in the backlog, where they may be cancelled or expire as usual. The permit is returned when
//! the thread looks for more work, so it competes with the others for the resources it has just freed.
//!
//! Locks: the lock of a queue may be held when the limiter's is taken, never the other way round. [`QueuesToWake`] wakes
//! the queues of instances that may begin, when no lock is held.

mod ledger;
mod supply;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use galatea_backend::InstanceSpec;
use galatea_config::ModelConfig;
use galatea_types::Result;

use self::ledger::{MemberId, PermitGrant, PermitLedger};
pub use self::supply::ResourceSupply;
use crate::sync::{LockExt, Mutex};

/// Limits the executions of all models that share it.
pub struct RateLimiter {
    state: Mutex<State>,
}

struct State {
    ledger: PermitLedger,
    queues: BTreeMap<u64, Weak<dyn WakeQueue>>,
    next_queue: u64,
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").finish_non_exhaustive()
    }
}

/// A queue whose threads may wait for permits.
pub(crate) trait WakeQueue: Send + Sync {
    /// Makes its threads check if they have a permit.
    fn wake(&self);
}

impl RateLimiter {
    /// Creates a limiter. `provided` is the supply of each resource. If none is given, the supply of each is the largest
    /// demand of an instance.
    pub fn new(provided: Vec<ResourceSupply>) -> Arc<Self> {
        let (queues, next_queue) = (BTreeMap::new(), 0);
        let state = State { ledger: PermitLedger::new(provided), queues, next_queue };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Returns the permits for the instances of a queue.
    pub(crate) fn permits(self: &Arc<Self>, queue: Weak<dyn WakeQueue>) -> Permits {
        let mut state = self.state.lock_unpoisoned();
        let number = state.next_queue;
        state.next_queue += 1;
        state.queues.insert(number, queue);
        Permits { limiter: self.clone(), queue: number }
    }
}

/// The permits of the instances of one queue. Dropping it removes them.
pub(crate) struct Permits {
    limiter: Arc<RateLimiter>,
    queue: u64,
}

/// The answer to a request for a permit.
pub(crate) enum PermitClaim {
    /// The instance may begin.
    Begin,
    /// The instance sleeps until [`Permits::is_granted`].
    Wait,
    /// The instance wakes these queues, which takes other locks, and asks again.
    AskAgain(QueuesToWake),
}

impl Permits {
    /// Adds an instance, before it is started.
    ///
    /// # Errors
    /// When its group demands more than there is.
    pub fn register(&self, index: usize, spec: &InstanceSpec, config: &ModelConfig) -> Result<()> {
        let limiter = spec.group.rate_limiter.as_ref();
        let resources = limiter.map_or(&[][..], |limiter| &limiter.resources);
        let demand = supply::demand(resources, spec.device_id);
        let priority = limiter.map_or(1, |limiter| limiter.priority);
        let granted = self.with(index, |ledger, id| ledger.add(id, demand, priority));
        let group = || config.instance_groups().iter().position(|group| *group == *spec.group);
        let granted = granted.map_err(|error| error.of_group(group().unwrap_or(0)))?;
        self.wakes(granted).wake();
        Ok(())
    }

    /// See [`PermitLedger::looks_for_work`].
    pub fn looks_for_work(&self, index: usize) {
        self.with(index, PermitLedger::looks_for_work);
    }

    /// See [`PermitLedger::claim`].
    pub fn claim(&self, index: usize, waiting: Option<usize>) -> PermitClaim {
        let granted = self.with(index, |ledger, id| ledger.claim(id, waiting));
        match granted {
            PermitGrant { may_begin: true, .. } => PermitClaim::Begin,
            PermitGrant { others, .. } if others.is_empty() => PermitClaim::Wait,
            PermitGrant { others, .. } => PermitClaim::AskAgain(self.wakes(others)),
        }
    }

    /// See [`PermitLedger::rest`].
    pub fn rest(&self, index: usize) -> QueuesToWake {
        self.wakes(self.with(index, PermitLedger::rest))
    }

    /// See [`PermitLedger::leave`].
    pub fn leave(&self, index: usize) -> QueuesToWake {
        self.wakes(self.with(index, PermitLedger::leave))
    }

    /// See [`PermitLedger::remove`].
    pub fn remove(&self, index: usize) -> QueuesToWake {
        self.wakes(self.with(index, PermitLedger::remove))
    }

    /// Returns true if the instance has its permit and has not begun.
    pub fn is_granted(&self, index: usize) -> bool {
        self.with(index, |ledger, id| ledger.is_granted(id))
    }

    fn with<R>(&self, index: usize, call: impl FnOnce(&mut PermitLedger, MemberId) -> R) -> R {
        let id = MemberId { queue: self.queue, index };
        call(&mut self.limiter.state.lock_unpoisoned().ledger, id)
    }

    fn wakes(&self, granted: Vec<MemberId>) -> QueuesToWake {
        if granted.is_empty() {
            return QueuesToWake::default();
        }
        let mut numbers: Vec<u64> = granted.into_iter().map(|id| id.queue).collect();
        numbers.dedup();
        let state = self.limiter.state.lock_unpoisoned();
        QueuesToWake(
            numbers.iter().filter_map(|number| state.queues.get(number).cloned()).collect(),
        )
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        self.limiter.state.lock_unpoisoned().queues.remove(&self.queue);
    }
}

/// Queues with an instance that may begin.
#[derive(Default)]
#[must_use = "those that may begin sleep until they are woken"]
pub(crate) struct QueuesToWake(Vec<Weak<dyn WakeQueue>>);

impl QueuesToWake {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes the queues. The caller must hold no lock.
    pub fn wake(self) {
        self.0.iter().filter_map(Weak::upgrade).for_each(|queue| queue.wake());
    }
}

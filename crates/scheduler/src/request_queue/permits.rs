//! Instance threads that need a permit of the rate limiter for what they would execute.

use std::{
    ops::ControlFlow,
    sync::{Arc, Weak},
    time::Duration,
};

use galatea_backend::InstanceSpec;
use galatea_config::ModelConfig;
use galatea_types::Result;

use super::{RequestQueue, State};
use crate::{
    parking::Locked,
    queue::{Decision, Queued},
    rate_limiter::{Claim, RateLimiter, Wake},
};

/// How soon a thread without a permit looks for requests that have expired.
const EXPIRY_PAUSE: Duration = Duration::from_millis(20);

impl<T: Queued + Send + 'static> RequestQueue<T> {
    /// A queue whose instances need permits of `limiter`, if there is one.
    pub fn limited(
        config: &ModelConfig,
        instances: usize,
        hold_until_queued: usize,
        limiter: Option<&Arc<RateLimiter>>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|queue: &Weak<Self>| {
            let permits = limiter.map(|limiter| limiter.permits(queue.clone()));
            Self { permits, ..Self::new(config, instances, hold_until_queued) }
        })
    }
}

impl<T: Queued> RequestQueue<T> {
    /// Counts what an instance asks for, before it is started.
    ///
    /// # Errors
    /// When it asks for more than there is.
    pub fn register(&self, index: usize, spec: &InstanceSpec, config: &ModelConfig) -> Result<()> {
        self.permits.as_ref().map_or(Ok(()), |permits| permits.register(index, spec, config))
    }

    pub(super) fn looks_for_work(&self, index: usize) {
        if let Some(permits) = &self.permits {
            permits.looks_for_work(index);
        }
    }

    pub(super) fn has_permit(&self, index: usize) -> bool {
        self.permits.as_ref().is_some_and(|permits| permits.is_granted(index))
    }

    /// The instance does not work for now.
    pub(super) fn leave_permits(&self, index: usize) {
        if let Some(permits) = &self.permits {
            permits.leave(index).wake();
        }
    }

    /// The instance is gone.
    pub(super) fn remove_permits(&self, index: usize) {
        if let Some(permits) = &self.permits {
            permits.remove(index).wake();
        }
    }

    /// Goes on with what was decided, if the instance may: else time has passed, and it is to be decided again.
    /// `rest`: as for [`RequestQueue::pull`].
    pub(super) fn admit<'a>(
        &'a self,
        state: Locked<'a, State<T>>,
        index: usize,
        decision: &Decision,
        rest: impl Fn(),
    ) -> ControlFlow<Locked<'a, State<T>>, Locked<'a, State<T>>> {
        let Some(permits) = &self.permits else { return ControlFlow::Continue(state) };
        let wakes = match decision {
            Decision::Take(_) => match permits.claim(index, state.backlog.len()) {
                Claim::Begin => return ControlFlow::Continue(state),
                Claim::AskAgain(wakes) => wakes,
                Claim::Wait => {
                    rest();
                    return ControlFlow::Break(self.sleep_for_permit(state, index));
                }
            },
            Decision::Wait(_) | Decision::Empty => permits.rest(index),
        };
        if wakes.is_empty() {
            return ControlFlow::Continue(state);
        }
        drop(state);
        wakes.wake();
        ControlFlow::Break(self.parking.lock())
    }

    fn sleep_for_permit<'a>(
        &'a self,
        state: Locked<'a, State<T>>,
        index: usize,
    ) -> Locked<'a, State<T>> {
        let is_needed = |s: &State<T>| {
            let is_over = s.is_closed && s.in_flight() == 0;
            is_over || s.is_called_off(index) || self.has_permit(index)
        };
        match self.needs_clock {
            true => state.sleep_for(EXPIRY_PAUSE, is_needed),
            false => state.sleep(is_needed),
        }
    }
}

impl<T: Queued + Send> Wake for RequestQueue<T> {
    fn wake(&self) {
        self.parking.lock().wake_all();
    }
}

//! Makes instance threads wait for a permit of the rate limiter before they execute.

use std::{
    ops::ControlFlow,
    sync::{Arc, Weak},
};

use galatea_backend::InstanceSpec;
use galatea_config::ModelConfig;
use galatea_types::{Clock, Result};

use super::{RequestQueue, State};
use crate::{
    parking::Locked,
    queue::Decision,
    rate_limiter::{PermitClaim, QueuesToWake, RateLimiter, WakeQueue},
    sequence::{SequenceRequest, TestHold},
};

impl<T: SequenceRequest<States: Send> + Send + 'static> RequestQueue<T> {
    /// Creates a queue whose instances need permits of `limiter`, if there is one.
    pub fn limited(
        config: &ModelConfig,
        instances: usize,
        hold: TestHold,
        limiter: Option<&Arc<RateLimiter>>,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new_cyclic(|queue: &Weak<Self>| {
            let permits = limiter.map(|limiter| limiter.permits(queue.clone()));
            Self { permits, ..Self::new(config, instances, hold, clock) }
        })
    }
}

impl<T: SequenceRequest> RequestQueue<T> {
    /// Registers the demand of an instance before it is started.
    ///
    /// # Errors
    /// When it demands more than there is.
    pub fn register(&self, index: usize, spec: &InstanceSpec, config: &ModelConfig) -> Result<()> {
        self.permits.as_ref().map_or(Ok(()), |permits| permits.register(index, spec, config))
    }

    pub(super) fn looks_for_work(&self, index: usize) {
        if let Some(permits) = &self.permits {
            permits.looks_for_work(index);
        }
    }

    /// Returns true if a sleeping thread must check again although it was not woken for work.
    pub(super) fn is_wanted(&self, state: &State<T>, index: usize) -> bool {
        let has_permit = || self.permits.as_ref().is_some_and(|permits| permits.is_granted(index));
        state.is_called_off(index) || has_permit()
    }

    /// Unlocks because the instance stops working for now, and wakes another for the waiting requests. Its own turn ends first,
    /// so that the other instance gets it.
    pub(super) fn leave(&self, state: Locked<'_, State<T>>, index: usize) {
        let permits = self.permits.as_ref();
        let wakes = permits.map_or_else(QueuesToWake::default, |permits| permits.leave(index));
        let left = state.waiting.len();
        state.wake_for_rest(left);
        wakes.wake();
    }

    /// Removes the permits of a removed instance.
    pub(super) fn remove_permits(&self, index: usize) {
        if let Some(permits) = &self.permits {
            permits.remove(index).wake();
        }
    }

    /// Continues with the decision if the instance may execute. Else time has passed, and it must decide again. `rest` is that
    /// of [`RequestQueue::pull`].
    pub(super) fn admit<'a>(
        &'a self,
        state: Locked<'a, State<T>>,
        index: usize,
        decision: &Decision,
        rest: impl Fn(),
    ) -> ControlFlow<Locked<'a, State<T>>, Locked<'a, State<T>>> {
        let Some(permits) = &self.permits else { return ControlFlow::Continue(state) };
        let wakes = match decision {
            Decision::Take(_) => {
                let shared = (!self.is_per_instance).then(|| state.waiting.len());
                match permits.claim(index, shared) {
                    PermitClaim::Begin => return ControlFlow::Continue(state),
                    PermitClaim::AskAgain(wakes) => wakes,
                    PermitClaim::Wait => {
                        rest();
                        let is_over = |s: &State<T>| s.is_closed && s.in_flight() == 0;
                        let state =
                            state.sleep(index, None, |s| is_over(s) || self.is_wanted(s, index));
                        return ControlFlow::Break(state);
                    }
                }
            }
            Decision::Wait(_) | Decision::Empty => permits.rest(index),
        };
        if wakes.is_empty() {
            return ControlFlow::Continue(state);
        }
        drop(state);
        wakes.wake();
        ControlFlow::Break(self.lock_for(index))
    }
}

impl<T: SequenceRequest<States: Send> + Send> WakeQueue for RequestQueue<T> {
    fn wake(&self) {
        self.parking.lock().wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use galatea_backend::testing::{instance_spec, model_config};
    use galatea_test_support::interleavings;
    use galatea_types::Error;
    use shuttle::thread;

    use super::*;
    use crate::request_queue::{
        Work,
        tests::{ITERATIONS, Numbered, Queue, never, push},
    };

    const REQUESTS: u64 = 2;

    fn config(more: &str) -> ModelConfig {
        let limiter =
            "instance_group { count: 2 rate_limiter { resources { name: 'R' count: 1 } } }";
        model_config(&format!("name: 'm' backend: 'm' {limiter} {more}"))
    }

    fn register(queue: &Queue, index: usize) {
        let config = config("");
        let group = Arc::new(config.instance_groups()[0].clone());
        let spec = InstanceSpec { group, ..instance_spec("m", index) };
        queue.register(index, &spec, &config).expect("there is enough");
    }

    fn limited(config: &ModelConfig, instances: usize, limiter: &Arc<RateLimiter>) -> Queue {
        RequestQueue::limited(
            config,
            instances,
            TestHold::default(),
            Some(limiter),
            Clock::system(),
        )
    }

    fn new_queue(limiter: &Arc<RateLimiter>, more: &str) -> Queue {
        let queue = limited(&config(more), 2, limiter);
        (0..2).for_each(|index| register(&queue, index));
        queue
    }

    /// Pulls until the queue ends; how many requests were executed. `at_work`: of all queues.
    fn serve(queue: &Queue, index: usize, at_work: &AtomicUsize) -> usize {
        queue.instance_begins(index);
        queue.instance_started(index);
        let (mut executed, mut done) = (0, 0);
        loop {
            match queue.pull(index, done, || ()) {
                Work::Batch(requests) => {
                    assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "there is one copy");
                    thread::yield_now();
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    done = requests.len();
                    executed += done;
                }
                Work::Steps(_) => panic!("there are no sequences"),
                Work::Dropped(dropped) => done = dropped.len(),
                Work::Restart(_) => {
                    done = 0;
                    assert!(queue.wait_until_idle(never()));
                    queue.instance_begins(index);
                    queue.instance_started(index);
                }
                Work::End | Work::Retire => {
                    queue.thread_ended(index);
                    return executed;
                }
            }
        }
    }

    /// Two models that share one copy of a resource, of which the first is disturbed.
    fn check(more: &'static str, disturb: fn(&Queue)) {
        let run = move || {
            let limiter = RateLimiter::new(Vec::new());
            let at_work = Arc::new(AtomicUsize::new(0));
            let queues = [new_queue(&limiter, more), new_queue(&limiter, more)];
            let mut instances = Vec::new();
            for (queue, index) in queues.iter().flat_map(|queue| [(queue, 0), (queue, 1)]) {
                let (queue, at_work) = (queue.clone(), at_work.clone());
                instances.push(thread::spawn(move || serve(&queue, index, &at_work)));
            }
            let first = queues[0].clone();
            let disturber = thread::spawn(move || disturb(&first));
            queues.iter().for_each(|queue| drop(push(queue, REQUESTS)));
            disturber.join().expect("no panic");
            for queue in &queues {
                assert!(queue.wait_until_idle(never()));
                queue.close();
            }
            let executed: usize = instances.into_iter().map(|i| i.join().expect("no panic")).sum();
            assert_eq!(executed as u64, 2 * REQUESTS);
        };
        interleavings::check_random(run, ITERATIONS);
        interleavings::check_pct(run, ITERATIONS, 3);
    }

    #[test]
    fn models_that_share_a_resource_execute_in_turn() {
        check("", |_| ());
    }

    #[test]
    fn batches_that_share_a_resource_execute_in_turn() {
        check(
            "max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 7200000000 }",
            |_| (),
        );
    }

    #[test]
    fn a_permit_of_a_failed_instance_goes_to_another() {
        check("", |queue| {
            queue.break_instance(0, 1, Error::internal("it broke"));
        });
    }

    #[test]
    fn a_permit_of_a_retired_instance_goes_to_another() {
        check("", |queue| {
            assert!(queue.retire_instances(&[0]).is_none());
            assert!(queue.wait_until_gone(0, never()));
        });
    }

    /// A request cancelled while its instance waits for a permit leaves the permit to others.
    #[test]
    fn a_permit_of_an_abandoned_request_goes_to_another() {
        check("", |queue| {
            let request = Numbered::new();
            request.is_abandoned.store(true, Ordering::Relaxed);
            queue.push(request).expect("accepted");
            let taken = queue.take_abandoned();
            queue.finish(taken.len());
        });
    }

    #[test]
    fn a_demand_above_the_supply_is_refused() {
        interleavings::check_random(
            || {
                let supply = crate::ResourceSupply { name: "R".into(), count: 0, device: None };
                let limiter = RateLimiter::new(vec![supply]);
                let config = config("");
                let queue = limited(&config, 1, &limiter);
                let group = Arc::new(config.instance_groups()[0].clone());
                let spec = InstanceSpec { group, ..instance_spec("m", 0) };
                let error = queue.register(0, &spec, &config).expect_err("refused");
                assert_eq!(
                    error.message(),
                    "Resource count for \"R\" is limited to 0 which will prevent scheduling of one or more model \
                     instances, the minimum required count is 1"
                );
            },
            1,
        );
    }
}

//! The threads that sleep, lane by lane, and those in whose place somebody else works meanwhile.

use std::sync::Arc;

use super::Locked;
use crate::sync::Condvar;

/// The threads that sleep, and where.
pub(super) struct Sleepers {
    lanes: Vec<SleeperLane>,
    /// By their numbers.
    threads: Vec<Thread>,
}

/// The threads of a lane that have no work.
#[derive(Clone, Default)]
struct SleeperLane {
    /// Asleep, and nobody has woken them yet; the last fell asleep last.
    sleeping: Vec<usize>,
    /// Threads woken that have not looked at the value yet.
    woken: usize,
}

struct Thread {
    condition: Condition,
    /// Where it sleeps.
    place: Arc<Condvar>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Awake,
    Asleep,
    Woken,
    /// Somebody else does its work, and it is to sleep on.
    Replaced,
}

impl Sleepers {
    pub fn new(lanes: usize) -> Self {
        Self { lanes: vec![SleeperLane::default(); lanes], threads: Vec::new() }
    }

    /// Threads of the lane that have no work, or were woken and have not looked for it yet.
    pub fn idle(&self, lane: usize) -> usize {
        self.lanes[lane].sleeping.len() + self.lanes[lane].woken
    }

    pub fn woken(&self, lane: usize) -> usize {
        self.lanes[lane].woken
    }

    pub fn places(&self) -> impl Iterator<Item = &Condvar> {
        self.threads.iter().map(|thread| &*thread.place)
    }

    /// Where a thread waits. It is known from then on.
    pub fn place_of(&mut self, thread: usize) -> Arc<Condvar> {
        let new = || Thread { condition: Condition::Awake, place: Arc::new(Condvar::new()) };
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, new);
        }
        self.threads[thread].place.clone()
    }

    /// Where the thread is to wait as long as it [sleeps on](Self::sleeps_on).
    pub fn fall_asleep(&mut self, thread: usize, lane: usize) -> Arc<Condvar> {
        let place = self.place_of(thread);
        self.put_to_sleep(thread, lane);
        place
    }

    fn put_to_sleep(&mut self, thread: usize, lane: usize) {
        self.threads[thread].condition = Condition::Asleep;
        self.lanes[lane].sleeping.push(thread);
    }

    pub fn sleeps_on(&self, thread: usize, is_needed: impl FnOnce() -> bool) -> bool {
        match self.threads[thread].condition {
            Condition::Asleep => !is_needed(),
            Condition::Replaced => true,
            Condition::Awake | Condition::Woken => false,
        }
    }

    pub fn is_replaced(&self, thread: usize) -> bool {
        self.threads[thread].condition == Condition::Replaced
    }

    /// The thread does not sleep any more.
    pub fn awake(&mut self, thread: usize, lane: usize) {
        let lane = &mut self.lanes[lane];
        match self.threads[thread].condition {
            Condition::Woken => lane.woken -= 1,
            // It is needed, or its time is over, and nobody has woken it.
            _ => lane.sleeping.retain(|sleeping| *sleeping != thread),
        }
        self.threads[thread].condition = Condition::Awake;
    }

    /// Counts a thread of the lane as woken that sleeps, and returns where.
    pub fn wake(&mut self, lane: usize) -> Option<Arc<Condvar>> {
        let lane = &mut self.lanes[lane];
        let thread = &mut self.threads[lane.sleeping.pop()?];
        lane.woken += 1;
        thread.condition = Condition::Woken;
        Some(thread.place.clone())
    }
}

impl<S> Locked<'_, S> {
    /// Takes the place of a thread of the lane that sleeps, until [`Locked::end_replacing`]. It sleeps on, whatever wakes
    /// it. `None`: none sleeps, or the leader is to decide.
    pub fn replace_sleeper(&mut self) -> Option<usize> {
        if self.has_leader() {
            return None;
        }
        let Sleepers { lanes, threads } = &mut self.state.sleepers;
        let thread = lanes[self.lane].sleeping.pop()?;
        threads[thread].condition = Condition::Replaced;
        Some(thread)
    }

    /// The thread that was replaced sleeps as before. What woke it meanwhile was in vain: it is to be woken now, where there is
    /// something for it.
    pub fn end_replacing(&mut self, thread: usize) {
        let lane = self.lane;
        self.state.sleepers.put_to_sleep(thread, lane);
    }

    /// Has a thread that sleeps check whether it is needed.
    pub fn wake_thread(&self, thread: usize) {
        self.state.sleepers.threads[thread].place.notify_all();
    }
}

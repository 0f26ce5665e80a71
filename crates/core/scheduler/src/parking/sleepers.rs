//! The sleeping threads, lane by lane, and those that another thread replaces meanwhile.

use std::sync::Arc;

use super::Locked;
use crate::sync::Condvar;

/// The sleeping threads and their condition variables.
pub(super) struct Sleepers {
    lanes: Vec<SleeperLane>,
    /// By thread number.
    threads: Vec<Thread>,
}

/// The threads of a lane that have no work.
#[derive(Clone, Default)]
struct SleeperLane {
    /// Threads that sleep and have not been woken; the last one fell asleep last.
    sleeping: Vec<usize>,
    /// The number of woken threads that have not checked the value yet.
    woken: usize,
}

struct Thread {
    condition: Condition,
    /// The condition variable that the thread sleeps on.
    place: Arc<Condvar>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Awake,
    Asleep,
    Woken,
    /// Another thread does its work, so it sleeps on.
    Replaced,
}

impl Sleepers {
    pub fn new(lanes: usize) -> Self {
        Self { lanes: vec![SleeperLane::default(); lanes], threads: Vec::new() }
    }

    /// Returns the number of threads of the lane that have no work, or were woken and have not looked for it yet.
    pub fn idle(&self, lane: usize) -> usize {
        self.lanes[lane].sleeping.len() + self.lanes[lane].woken
    }

    pub fn woken(&self, lane: usize) -> usize {
        self.lanes[lane].woken
    }

    pub fn places(&self) -> impl Iterator<Item = &Condvar> {
        self.threads.iter().map(|thread| &*thread.place)
    }

    /// Returns the place where a thread waits, and adds the thread if it is new.
    pub fn place_of(&mut self, thread: usize) -> Arc<Condvar> {
        let new = || Thread { condition: Condition::Awake, place: Arc::new(Condvar::new()) };
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, new);
        }
        self.threads[thread].place.clone()
    }

    /// Returns the place where the thread must wait as long as it [sleeps on](Self::sleeps_on).
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

    /// Marks the thread as awake.
    pub fn awake(&mut self, thread: usize, lane: usize) {
        let lane = &mut self.lanes[lane];
        match self.threads[thread].condition {
            Condition::Woken => lane.woken -= 1,
            // It is needed or its time is over, and nobody has woken it.
            _ => lane.sleeping.retain(|sleeping| *sleeping != thread),
        }
        self.threads[thread].condition = Condition::Awake;
    }

    /// Marks a sleeping thread of the lane as woken, and returns its place.
    pub fn wake(&mut self, lane: usize) -> Option<Arc<Condvar>> {
        let lane = &mut self.lanes[lane];
        let thread = &mut self.threads[lane.sleeping.pop()?];
        lane.woken += 1;
        thread.condition = Condition::Woken;
        Some(thread.place.clone())
    }
}

impl<S> Locked<'_, S> {
    /// Takes the place of a sleeping thread of the lane until [`Locked::end_replacing`]. That thread sleeps on, even if it is
    /// woken. Returns `None` if no thread sleeps, or if the leader must decide.
    pub fn replace_sleeper(&mut self) -> Option<usize> {
        if self.has_leader() {
            return None;
        }
        let Sleepers { lanes, threads } = &mut self.state.sleepers;
        let thread = lanes[self.lane].sleeping.pop()?;
        threads[thread].condition = Condition::Replaced;
        Some(thread)
    }

    /// Puts the replaced thread back to sleep. Wake-ups that it got meanwhile are lost: the caller must wake it now if there is
    /// work for it.
    pub fn end_replacing(&mut self, thread: usize) {
        let lane = self.lane;
        self.state.sleepers.put_to_sleep(thread, lane);
    }

    /// Makes a sleeping thread check if it is needed.
    pub fn wake_thread(&self, thread: usize) {
        self.state.sleepers.threads[thread].place.notify_all();
    }
}

//! The threads that call a library. A key belongs to one of them, so that a look-up comes after an earlier insertion of the same
//! key.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use galatea_response_cache::{CacheKey, Entry, OnLookUp};
use galatea_types::LockExt as _;

/// Longest time that a look-up delays a request.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);
/// Most jobs that wait for a thread.
const MOST_WAITING: usize = 1024;
/// Most bytes of responses that wait for a thread.
const MOST_BYTES: usize = 16 << 20;

/// The calls that the threads make.
pub(crate) trait Store: Send + Sync + 'static {
    /// Returns the response of a key. May block.
    fn look_up(&self, key: &CacheKey) -> Option<Entry>;

    /// Stores a response. May block.
    fn insert(&self, key: &CacheKey, entry: &Entry);

    /// Counts a look-up that was given up.
    fn gave_up(&self);
}

/// A look-up whose answer a request waits for.
struct Asked {
    key: CacheKey,
    since: Instant,
    then: Mutex<Option<OnLookUp>>,
}

impl Asked {
    /// Gives the answer, unless the look-up was given up before.
    fn answer(&self, found: Option<Entry>) -> bool {
        let Some(then) = self.then.lock_unpoisoned().take() else { return false };
        // The callback includes all later work of the request: its panic must not end the thread.
        if catch_unwind(AssertUnwindSafe(|| then(found))).is_err() {
            log::error!("a request panicked after its look-up in the response cache");
        }
        true
    }
}

enum Job {
    LookUp(Arc<Asked>),
    Insert(CacheKey, Entry),
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// The look-up that the library works on, and when the current call began.
    current: Option<Arc<Asked>>,
    busy_since: Option<Instant>,
    /// The current call takes too long, so new look-ups are not begun.
    is_stuck: bool,
    is_closed: bool,
}

/// A thread, and its jobs.
pub(crate) struct Lane {
    shared: Arc<(Mutex<Queue>, Condvar)>,
    /// Loses its sender when the thread ends.
    end: Mutex<Receiver<Infallible>>,
}

impl Lane {
    /// Starts the thread.
    pub fn start(store: Arc<impl Store>) -> io::Result<Self> {
        let shared = Arc::<(Mutex<Queue>, Condvar)>::default();
        let queue = shared.clone();
        let (ends, end) = mpsc::channel();
        let work = move || {
            let _ends: Sender<Infallible> = ends;
            work(&queue, &*store);
        };
        thread::Builder::new().name("triton cache".to_owned()).spawn(work)?;
        Ok(Self { shared, end: Mutex::new(end) })
    }

    /// Returns false if the library takes too long for an earlier call.
    pub fn is_prompt(&self) -> bool {
        !self.shared.0.lock_unpoisoned().is_stuck
    }

    /// Queues a look-up. Returns the callback if too many wait.
    pub fn look_up(&self, key: CacheKey, since: Instant, then: OnLookUp) -> Result<(), OnLookUp> {
        let mut queue = self.shared.0.lock_unpoisoned();
        if queue.is_stuck || queue.is_closed || queue.jobs.len() >= MOST_WAITING {
            return Err(then);
        }
        let asked = Asked { key, since, then: Mutex::new(Some(then)) };
        queue.jobs.push_back(Job::LookUp(Arc::new(asked)));
        drop(queue);
        self.shared.1.notify_one();
        Ok(())
    }

    /// Queues a response. Returns false if too many wait: it is not stored.
    pub fn insert(&self, key: CacheKey, entry: &Entry) -> bool {
        let mut queue = self.shared.0.lock_unpoisoned();
        let bytes = queue.bytes.saturating_add(entry.byte_size());
        if queue.is_stuck
            || queue.is_closed
            || queue.jobs.len() >= MOST_WAITING
            || (bytes > MOST_BYTES && queue.bytes > 0)
        {
            return false;
        }
        queue.bytes = bytes;
        queue.jobs.push_back(Job::Insert(key, entry.clone()));
        drop(queue);
        self.shared.1.notify_one();
        true
    }

    /// Answers the look-ups that have waited too long with nothing. Returns their number.
    pub fn give_up_overdue(&self, now: Instant) -> usize {
        let is_overdue = |since: Instant| now.saturating_duration_since(since) >= LONGEST;
        let overdue: Vec<Arc<Asked>> = {
            let mut queue = self.shared.0.lock_unpoisoned();
            queue.is_stuck = queue.busy_since.is_some_and(is_overdue);
            let current = queue.current.clone().into_iter();
            let waiting = queue.jobs.iter().filter_map(|job| match job {
                Job::LookUp(asked) => Some(asked.clone()),
                Job::Insert(..) => None,
            });
            current.chain(waiting).filter(|asked| is_overdue(asked.since)).collect()
        };
        overdue.iter().filter(|asked| asked.answer(None)).count()
    }

    /// Ends the thread after the current call. Look-ups that wait find nothing, and responses that wait are not stored.
    pub fn close(&self) {
        let jobs = {
            let mut queue = self.shared.0.lock_unpoisoned();
            queue.is_closed = true;
            queue.bytes = 0;
            mem::take(&mut queue.jobs)
        };
        self.shared.1.notify_one();
        for job in jobs {
            if let Job::LookUp(asked) = job {
                asked.answer(None);
            }
        }
    }

    /// Waits for the end of the thread of a closed lane. Returns false if it has not ended after this time.
    pub fn wait(&self, longest: Duration) -> bool {
        self.end.lock_unpoisoned().recv_timeout(longest) == Err(RecvTimeoutError::Disconnected)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.close();
    }
}

fn work((queue, changed): &(Mutex<Queue>, Condvar), store: &impl Store) {
    loop {
        let job = {
            let guard = queue.lock_unpoisoned();
            let waiting = |queue: &mut Queue| queue.jobs.is_empty() && !queue.is_closed;
            let mut guard = changed.wait_while(guard, waiting).unwrap_or_else(|e| e.into_inner());
            let Some(job) = guard.jobs.pop_front() else { return };
            match &job {
                Job::LookUp(asked) => guard.current = Some(asked.clone()),
                Job::Insert(_, entry) => {
                    guard.bytes = guard.bytes.saturating_sub(entry.byte_size());
                }
            }
            guard.busy_since = Some(Instant::now());
            job
        };
        let answer = match job {
            Job::LookUp(asked) => {
                let is_wanted = asked.then.lock_unpoisoned().is_some();
                let found = if is_wanted { store.look_up(&asked.key) } else { None };
                Some((asked, found))
            }
            Job::Insert(key, entry) => {
                store.insert(&key, &entry);
                None
            }
        };
        {
            let mut guard = queue.lock_unpoisoned();
            (guard.current, guard.busy_since, guard.is_stuck) = (None, None, false);
        }
        if let Some((asked, found)) = answer
            && !asked.answer(found)
        {
            store.gave_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use galatea_test_support::eventually;

    use super::*;

    /// Takes a token from a channel in each look-up, and then finds nothing.
    struct Gated {
        gate: Mutex<Receiver<()>>,
        given_up: Mutex<usize>,
        stored: Mutex<Vec<CacheKey>>,
    }

    impl Store for Gated {
        fn look_up(&self, _: &CacheKey) -> Option<Entry> {
            let _ = self.gate.lock_unpoisoned().recv();
            None
        }

        fn insert(&self, key: &CacheKey, _: &Entry) {
            self.stored.lock_unpoisoned().push(*key);
        }

        fn gave_up(&self) {
            *self.given_up.lock_unpoisoned() += 1;
        }
    }

    fn gated() -> (Sender<()>, Arc<Gated>, Lane) {
        let (open, gate) = channel();
        let (gate, given_up, stored) = (Mutex::new(gate), Mutex::default(), Mutex::default());
        let store = Arc::new(Gated { gate, given_up, stored });
        let lane = Lane::start(store.clone()).expect("a thread");
        (open, store, lane)
    }

    fn key(number: u8) -> CacheKey {
        CacheKey::from_bytes([number; 32])
    }

    #[test]
    fn a_library_that_hangs_delays_no_request_for_long() {
        let (open, store, lane) = gated();
        let (answers, answered) = channel();
        let now = Instant::now();
        let ask = |number: u8| {
            let answers = answers.clone();
            lane.look_up(key(number), now, Box::new(move |_| answers.send(number).expect("kept")))
        };
        assert!(ask(1).is_ok() && ask(2).is_ok());
        eventually("the call has begun", || lane.shared.0.lock_unpoisoned().current.is_some());
        assert_eq!(lane.give_up_overdue(now), 0);
        assert!(lane.is_prompt());
        // Later than the call's own begin too.
        let later = now + LONGEST + Duration::from_secs(60);
        assert_eq!(lane.give_up_overdue(later), 2);
        assert_eq!([answered.recv(), answered.recv()], [Ok(1), Ok(2)]);
        assert_eq!(lane.give_up_overdue(later), 0, "each once");
        assert!(!lane.is_prompt() && ask(3).is_err());
        open.send(()).expect("it waits");
        eventually("it goes on", || lane.is_prompt());
        eventually("both are counted", || *store.given_up.lock_unpoisoned() == 2);
    }

    #[test]
    fn jobs_keep_their_order_and_their_number_is_bounded() {
        let (open, store, lane) = gated();
        let (answers, answered) = channel();
        let (now, entry) = (Instant::now(), galatea_response_cache::decode(empty()).expect("one"));
        for number in 0..MOST_WAITING {
            let answers = answers.clone();
            let then: OnLookUp = Box::new(move |_| answers.send(number).expect("kept"));
            if number == 0 {
                assert!(lane.look_up(key(0), now, then).is_ok());
                eventually("begun", || lane.shared.0.lock_unpoisoned().current.is_some());
            } else {
                assert!(lane.insert(key(number as u8), &entry));
            }
        }
        assert!(lane.insert(key(7), &entry), "the last place");
        assert!(!lane.insert(key(7), &entry));
        assert!(lane.look_up(key(7), now, Box::new(|_| {})).is_err());
        open.send(()).expect("it waits");
        assert_eq!(answered.recv(), Ok(0));
        eventually("all are stored", || store.stored.lock_unpoisoned().len() == MOST_WAITING);
        assert_eq!(store.stored.lock_unpoisoned().first(), Some(&key(1)));
    }

    /// The bytes of a response without outputs.
    fn empty() -> Vec<u8> {
        [&b"galresp1"[..], &[0; 8]].concat()
    }

    #[test]
    fn a_closed_lane_answers_what_waits() {
        let (open, _store, lane) = gated();
        let (answers, answered) = channel();
        for number in 0..3 {
            let answers = answers.clone();
            let then: OnLookUp = Box::new(move |_| answers.send(number).expect("kept"));
            assert!(lane.look_up(key(0), Instant::now(), then).is_ok());
            eventually("begun", || lane.shared.0.lock_unpoisoned().current.is_some());
        }
        lane.close();
        assert_eq!([answered.recv(), answered.recv()], [Ok(1), Ok(2)]);
        assert!(!lane.wait(Duration::ZERO));
        open.send(()).expect("it waits");
        assert_eq!(answered.recv(), Ok(0));
        assert!(lane.wait(Duration::from_secs(60)));
    }
}

//! A thread for look-ups of long requests. The key of one takes a millisecond per megabyte and a half. The thread that submits
//! the request serves connections and cannot spend that time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        OnceLock,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

/// Most jobs that wait.
const MAX_WAITING: usize = 64;

/// A job for the thread.
pub type Job = Box<dyn FnOnce() + Send>;

/// A thread that starts when it is first needed, and ends when this value is dropped.
#[derive(Default)]
pub struct LongWork(OnceLock<Option<SyncSender<Job>>>);

impl LongWork {
    /// Runs a job on the thread.
    ///
    /// # Errors
    /// The job itself, when too many jobs wait or there is no thread.
    pub fn run(&self, job: Job) -> Result<(), Job> {
        match self.0.get_or_init(start) {
            Some(jobs) => jobs.try_send(job).map_err(|refused| match refused {
                std::sync::mpsc::TrySendError::Full(job)
                | std::sync::mpsc::TrySendError::Disconnected(job) => job,
            }),
            None => Err(job),
        }
    }
}

fn start() -> Option<SyncSender<Job>> {
    let (jobs, queued) = sync_channel(MAX_WAITING);
    let started =
        thread::Builder::new().name("response cache".to_owned()).spawn(move || work(&queued));
    if let Err(error) = started {
        log::error!("failed to start the thread of the response cache: {error}");
        return None;
    }
    Some(jobs)
}

fn work(queued: &Receiver<Job>) {
    for job in queued {
        // The job includes all later work of a request: its panic must not end the thread.
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            log::error!("a request panicked while it was looked up in the response cache");
        }
    }
}

impl std::fmt::Debug for LongWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LongWork")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_run_in_order_on_another_thread_and_their_number_is_bounded() {
        let work = LongWork::default();
        let (done, seen) = channel();
        let (open, gate) = channel::<()>();
        let first = done.clone();
        let began = channel();
        let (begin, begun) = began;
        let job: Job = Box::new(move || {
            begin.send(()).expect("the test waits");
            let _ = gate.recv();
            first.send((0, thread::current().name().map(str::to_owned))).expect("the test waits");
            panic!("this one only");
        });
        assert!(work.run(job).is_ok());
        begun.recv().expect("begun");
        for number in 1..=MAX_WAITING {
            let done = done.clone();
            assert!(work.run(Box::new(move || done.send((number, None)).expect("waits"))).is_ok());
        }
        assert!(work.run(Box::new(|| ())).is_err());
        drop(open);
        assert_eq!(seen.recv().expect("done"), (0, Some("response cache".to_owned())));
        let others: Vec<usize> = seen.iter().take(MAX_WAITING).map(|(number, _)| number).collect();
        assert_eq!(others, (1..=MAX_WAITING).collect::<Vec<_>>());
    }
}

//! What is done now and then by a server that serves: requests that nobody waits for leave the queues, what a burst has left
//! free goes back to the system, the load of the models is noted, and the log is told how many lines it did not get.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use galatea_engine::Engine;
use galatea_types::MemoryBudget;

use crate::memory::{BudgetRule, Trimming};

/// Between two looks. Each costs microseconds where there is nothing to do.
const INTERVAL: Duration = Duration::from_millis(500);

/// A thread that looks after that until this is dropped.
pub struct Upkeep {
    /// Its end is what the thread waits for; `None` once it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Looks once, and starts the thread.
    pub fn start(
        engine: &Arc<Engine>,
        memory: &Arc<MemoryBudget>,
        rule: BudgetRule,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (engine, memory) = (engine.clone(), memory.clone());
        let mut trimming = Trimming::default();
        rule.begin(trimming.begin(), &memory);
        let work = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                engine.release_abandoned();
                engine.sample_load();
                galatea_telemetry::tell_suppressed();
                if let Some(own) = trimming.look(&memory) {
                    rule.apply(own, &memory);
                }
            }
        };
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        // A panic was logged where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

//! What is done now and then by a server that serves: requests that nobody waits for leave the queues, what a burst has left
//! free goes back to the system, and so does code that only the start has needed, the load of the models is noted, and the log
//! is told how many lines it did not get.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use galatea_engine::Engine;
use galatea_types::MemoryBudget;

use crate::memory::{BudgetRule, CodeRelease, Trimming};

/// Milliseconds between two looks, half a second on average: in step with executions of a quarter of a second each, a queue
/// would be seen at the same point of them again and again. A look costs microseconds where there is nothing to do.
const INTERVAL_MS: Range<u64> = 400..600;

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
        rule.begin(trimming.begin() + still_to_fill(&engine), &memory);
        let work = move || {
            let mut code = CodeRelease::default();
            code.begin();
            trimming.rebase();
            while stopped.recv_timeout(interval()) == Err(RecvTimeoutError::Timeout) {
                engine.release_abandoned();
                engine.sample_load();
                galatea_telemetry::tell_suppressed();
                if code.look() {
                    trimming.rebase();
                }
                if let Some(own) = trimming.look(&memory) {
                    rule.apply(own + still_to_fill(&engine), &memory);
                }
            }
        };
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn interval() -> Duration {
    Duration::from_millis(fastrand::u64(INTERVAL_MS))
}

/// Bytes that the response cache does not take yet and will: requests may not have them.
fn still_to_fill(engine: &Engine) -> usize {
    let cache = engine.options().response_cache.as_ref().and_then(|cache| cache.metrics());
    cache.map_or(0, |cache| cache.capacity.saturating_sub(cache.bytes))
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        // A panic was logged where it happened.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

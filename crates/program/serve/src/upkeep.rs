//! Regular work of a running server. It removes abandoned requests from the queues and records the load of the models. It also
//! returns unused memory to the system, after bursts and after the start, and logs the number of lost log lines.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use galatea_engine::Engine;
use galatea_types::MemoryBudget;

use crate::memory::{BudgetRule, CodeRelease, Trimming};

/// Milliseconds between two looks, half a second on average. In step with executions of a quarter of a second each, looks
/// would always see a queue at the same point. A look costs microseconds if there is nothing to do.
const INTERVAL_MS: Range<u64> = 400..600;

/// A thread that does this work until the value is dropped.
pub struct Upkeep {
    /// Dropping the sender ends the thread; `None` once it is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Does the work once, and starts the thread.
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
                if let Some(cache) = &engine.options().response_cache {
                    cache.give_up_overdue(Instant::now());
                }
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

/// Returns the bytes that the response cache will use but does not yet: requests may not have them.
fn still_to_fill(engine: &Engine) -> usize {
    let cache = engine.options().response_cache.as_ref().and_then(|cache| cache.metrics());
    cache.map_or(0, |cache| cache.capacity.saturating_sub(cache.bytes))
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop = None;
        // A panic is already logged.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

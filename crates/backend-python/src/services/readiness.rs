//! Queries whether a model is ready that its worker has not answered yet.

use std::{
    collections::HashMap,
    sync::{Mutex, mpsc},
    time::Instant,
};

use galatea_types::LockExt as _;

use galatea_worker::{
    Channels,
    wire::{Outgoing, kind},
};

/// Open queries to one worker, by their ids.
#[derive(Default)]
pub(crate) struct ReadinessQueries(Mutex<State>);

#[derive(Default)]
struct State {
    last_id: u64,
    open: HashMap<u64, mpsc::Sender<bool>>,
    is_closed: bool,
}

impl ReadinessQueries {
    /// Asks the worker for the model's `is_ready`. The result comes later, or never.
    pub fn ask(&self, channels: &Channels) -> Option<Query<'_>> {
        let (id, result) = self.open()?;
        let query = Query { queries: self, id, result };
        let is_sent = channels.send_event(&Outgoing::new(kind::READINESS_QUERY, id)).is_ok();
        is_sent.then_some(query)
    }

    fn open(&self) -> Option<(u64, mpsc::Receiver<bool>)> {
        let mut state = self.0.lock_unpoisoned();
        if state.is_closed {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        state.last_id += 1;
        let id = state.last_id;
        state.open.insert(id, sender);
        Some((id, receiver))
    }

    /// The worker's answer to a query, which may have timed out since.
    pub fn answer(&self, id: u64, is_ready: bool) {
        if let Some(sender) = self.0.lock_unpoisoned().open.remove(&id) {
            let _ = sender.send(is_ready);
        }
    }

    /// The worker is gone: open queries end at once, and none is opened any more.
    pub fn close(&self) {
        let mut state = self.0.lock_unpoisoned();
        state.is_closed = true;
        state.open.clear();
    }
}

/// One open query.
pub(crate) struct Query<'a> {
    queries: &'a ReadinessQueries,
    id: u64,
    result: mpsc::Receiver<bool>,
}

impl Query<'_> {
    /// False when there is no result by `deadline`.
    pub fn wait_until(self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        self.result.recv_timeout(left).unwrap_or(false)
    }
}

impl Drop for Query<'_> {
    fn drop(&mut self) {
        self.queries.answer(self.id, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_gets_its_answer_or_the_end() {
        let queries = ReadinessQueries::default();
        let (first, result) = queries.open().expect("open");
        let (second, end) = queries.open().expect("open");
        assert_ne!(first, second);
        queries.answer(first, true);
        assert_eq!(result.recv(), Ok(true));
        queries.close();
        assert!(end.recv().is_err(), "it would wait for its whole limit");
        assert!(queries.open().is_none());
    }
}

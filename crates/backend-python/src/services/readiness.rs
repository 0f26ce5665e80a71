//! Queries whether a model is ready that its worker has not answered yet.

use std::{
    collections::HashMap,
    sync::{Mutex, mpsc},
    time::Duration,
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
    /// Calls the model's `is_ready` and waits for its result. False when there is none within `limit`.
    pub fn query(&self, channels: &Channels, limit: Duration) -> bool {
        let Some((id, result)) = self.open() else { return false };
        let is_sent = channels.send_event(&Outgoing::new(kind::READINESS_QUERY, id)).is_ok();
        let is_ready = is_sent && result.recv_timeout(limit).unwrap_or(false);
        self.answer(id, false);
        is_ready
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

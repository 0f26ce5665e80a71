use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use crate::{
    link::Link,
    wire::{Outgoing, kind},
};

/// Questions to a worker whether its model is ready, by number.
#[derive(Default)]
pub(crate) struct Questions(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    last: u64,
    open: HashMap<u64, mpsc::Sender<bool>>,
    is_closed: bool,
}

impl Questions {
    fn open(&self) -> Option<(u64, mpsc::Receiver<bool>)> {
        let mut asked = self.lock();
        if asked.is_closed {
            return None;
        }
        let (sender, receiver) = mpsc::channel();
        asked.last += 1;
        let number = asked.last;
        asked.open.insert(number, sender);
        Some((number, receiver))
    }

    pub fn answer(&self, number: u64, is_ready: bool) {
        if let Some(sender) = self.lock().open.remove(&number) {
            // Whoever asked may have given up.
            let _ = sender.send(is_ready);
        }
    }

    /// The worker is gone: nobody is left waiting.
    pub fn clear(&self) {
        let mut asked = self.lock();
        asked.is_closed = true;
        asked.open.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    /// The model's own say. False when there is none within `limit`.
    pub(crate) fn ask_ready(&self, limit: Duration) -> bool {
        let Some((number, answer)) = self.questions.open() else { return false };
        let is_sent = self.send_side(&Outgoing::new(kind::ASK_READY, number)).is_ok();
        let is_ready = is_sent && answer.recv_timeout(limit).unwrap_or(false);
        self.questions.answer(number, false);
        is_ready
    }
}

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use galatea_types::{InferResponse, Responder, Result};

/// An answer and where it goes.
pub(crate) struct Answer {
    pub responder: Responder,
    pub result: Result<InferResponse>,
}

/// Holds answers back until all earlier requests have theirs (S-17).
#[derive(Default)]
pub(crate) struct CompletionQueue {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    next: u64,
    answers: BTreeMap<u64, Answer>,
}

impl CompletionQueue {
    /// `place` counts the accepted requests from 0 without a gap.
    pub fn complete(&self, place: u64, answer: Answer) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.answers.insert(place, answer);
        // Sent under the lock: two instances must not overtake each other between the two steps.
        while let Some(answer) = held.take_next() {
            answer.responder.finish(answer.result);
        }
    }
}

impl Held {
    fn take_next(&mut self) -> Option<Answer> {
        let answer = self.answers.remove(&self.next)?;
        self.next += 1;
        Some(answer)
    }
}

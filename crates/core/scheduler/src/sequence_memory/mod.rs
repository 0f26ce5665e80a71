//! Limits the memory for states of sequences of all models to a part of the memory budget. Idle sequences end to make
//! room for those that are executed.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use galatea_backend::StateMemory;
use galatea_telemetry::metrics::SequenceMemoryMetrics;
use galatea_types::{Code, CorrelationId, Error, LockExt, MemoryBudget, MemoryReservation, Result};

/// States take at most 1/2 of the budget, so that idle sequences leave the other half to requests.
const PART: usize = 2;

/// The number of attempts if others take the memory that was freed for states.
const ATTEMPTS: usize = 4;

/// The idle sequences of one model that keep states.
pub(crate) trait RestingSequences: Send + Sync {
    /// Returns when the sequence became idle that would end first.
    fn resting_since(&self) -> Option<Instant>;
    /// Returns the bytes that all of them keep. Stops counting at `enough`.
    fn bytes_at_rest(&self, enough: usize) -> usize;
    /// Ends the sequence that has been idle longest. Returns its name and the bytes freed.
    fn give_way(&self) -> Option<(CorrelationId, usize)>;
}

/// Counts the states of the sequences of all models to the memory budget, of which they take at most half.
///
/// A state that grows beyond that ends the sequences of any model that have been idle longest. If all idle sequences do not
/// keep enough, the request with the new state fails, and its sequence keeps its previous state. A sequence with a waiting or
/// executing request is never ended.
#[derive(Debug)]
pub struct SequenceMemory {
    budget: Arc<MemoryBudget>,
    taken: Mutex<MemoryReservation>,
    models: Mutex<Vec<Model>>,
    gave_way: AtomicUsize,
    refused: AtomicUsize,
}

struct Model {
    name: Arc<str>,
    sequences: Weak<dyn RestingSequences>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Default for SequenceMemory {
    /// Returns a memory without a limit.
    fn default() -> Self {
        Self::of(MemoryBudget::unlimited())
    }
}

impl SequenceMemory {
    /// Returns a memory that uses a part of this budget.
    pub fn of(budget: Arc<MemoryBudget>) -> Self {
        Self {
            taken: Mutex::new(budget.reservation()),
            budget,
            models: Mutex::default(),
            gave_way: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }
    }

    /// Returns the metrics of the memory.
    pub fn metrics(&self) -> SequenceMemoryMetrics {
        SequenceMemoryMetrics {
            limit_bytes: self.limit(),
            used_bytes: self.used(),
            gave_way: self.gave_way.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Adds the sequences of a model to those that can be ended, while they exist.
    pub(crate) fn add(&self, name: Arc<str>, sequences: Weak<dyn RestingSequences>) {
        let mut models = self.models.lock_unpoisoned();
        models.retain(|model| model.sequences.strong_count() > 0);
        models.push(Model { name, sequences });
    }

    fn limit(&self) -> usize {
        self.budget.limit() / PART
    }

    fn used(&self) -> usize {
        self.taken.lock_unpoisoned().bytes()
    }

    /// Takes the bytes, or returns how many are missing.
    fn try_take(&self, bytes: usize) -> std::result::Result<(), usize> {
        let mut taken = self.taken.lock_unpoisoned();
        let missing = taken.bytes().saturating_add(bytes).saturating_sub(self.limit());
        if missing > 0 {
            return Err(missing);
        }
        // Requests may use more than their half; that part is missing as well.
        taken.try_grow(bytes).map_err(|over| {
            let most = over.limit - over.limit / 8;
            self.budget.used().saturating_add(bytes).saturating_sub(most).max(1)
        })
    }

    /// Ends the longest idle sequences until this many bytes are free; none if that cannot succeed.
    fn make_room(&self, bytes: usize) -> bool {
        if self.used() < bytes {
            return false;
        }
        let models: Vec<_> = {
            let models = self.models.lock_unpoisoned();
            let alive = |model: &Model| Some((model.name.clone(), model.sequences.upgrade()?));
            models.iter().filter_map(alive).collect()
        };
        let mut at_rest = 0_usize;
        for (_, sequences) in &models {
            at_rest = at_rest.saturating_add(sequences.bytes_at_rest(bytes - at_rest));
            if at_rest >= bytes {
                break;
            }
        }
        let mut freed = 0_usize;
        while at_rest >= bytes && freed < bytes {
            let rests = models.iter().filter_map(|m| Some((m.1.resting_since()?, m)));
            let Some((_, (name, sequences))) = rests.min_by_key(|(since, _)| *since) else { break };
            let Some((id, bytes)) = sequences.give_way() else { continue };
            freed = freed.saturating_add(bytes);
            self.note(name, &id);
        }
        freed >= bytes
    }

    fn note(&self, model: &str, id: &CorrelationId) {
        let count = self.gave_way.fetch_add(1, Ordering::Relaxed) + 1;
        // The metric counts each of them; the log reports only powers of two.
        if count.is_power_of_two() {
            log::warn!(
                "the states of sequences need more than their {} bytes: the server ended sequence {id} of model \
                 '{model}', idle for longest, the {count}. one since the start; allow more with --memory-budget",
                self.limit()
            );
        }
    }

    fn refusal(&self, bytes: usize) -> Error {
        let text = format!(
            "the state of the sequence grows by {bytes} bytes, and all states have {} of the {} bytes allowed, too few of \
             them in idle sequences; end sequences that are done, or allow more with --memory-budget: states may \
             take half of it",
            self.used(),
            self.limit()
        );
        Error::new(Code::Exhausted, text)
    }
}

impl StateMemory for SequenceMemory {
    fn take(&self, bytes: usize) -> Result<()> {
        for _ in 0..ATTEMPTS {
            match self.try_take(bytes) {
                Ok(()) => return Ok(()),
                Err(missing) if bytes <= self.limit() && self.make_room(missing) => {}
                Err(_) => break,
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(self.refusal(bytes))
    }

    fn give_back(&self, bytes: usize) {
        let mut taken = self.taken.lock_unpoisoned();
        let left = taken.bytes().saturating_sub(bytes);
        taken.shrink_to(left);
    }
}

#[cfg(test)]
mod tests;

//! Which traces go to which file.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use super::output::Output;
use crate::{render, sink::FinishedTrace, trace_memory::MemoryShare};

/// The most bytes of traces that wait for others of their file. More than these are written before the file is complete.
const MOST_WAITING: usize = 16 << 20;

/// The most bytes of room that stay between two writes.
const MOST_ROOM: usize = 1 << 20;

/// Collects the traces of each setting, and writes them to the file that they belong to.
pub(super) struct Writer {
    output: Output,
    /// By the number of the setting.
    batches: BTreeMap<u64, Batch>,
}

/// The traces of a setting that are not written.
#[derive(Default)]
struct Batch {
    text: String,
    count: u32,
    /// Traces in a file; 0: all go to one file.
    log_frequency: u32,
    /// They wait until the count of the setting is used up.
    waits: bool,
    held: Option<MemoryShare>,
}

impl Batch {
    fn add(&mut self, mut trace: FinishedTrace) {
        let before = self.text.len();
        render::trace(&trace, &mut self.text);
        // A trace that found no room has nothing to write.
        self.count += u32::from(self.text.len() > before);
        self.log_frequency = trace.log_frequency;
        self.waits = trace.log_frequency > 0 || trace.is_counted;
        // The text takes the place of the trace.
        trace.requests.clear();
        match &mut self.held {
            Some(held) => held.join(trace.held),
            None => self.held = Some(trace.held),
        }
    }

    /// Removes the traces. The room for their text stays, if it is not large.
    fn empty(&mut self) {
        self.text.clear();
        self.text.shrink_to(MOST_ROOM);
        (self.count, self.held) = (0, None);
    }

    /// Returns whether the traces fill a numbered file.
    fn is_full(&self) -> bool {
        self.log_frequency > 0
            && (self.count >= self.log_frequency || self.text.len() >= MOST_WAITING)
    }
}

impl Writer {
    /// Makes a writer that counts the traces that it cannot write in `lost`.
    pub fn new(path: PathBuf, lost: Arc<AtomicU64>) -> Self {
        Self { output: Output::new(path, lost), batches: BTreeMap::new() }
    }

    /// Adds a trace to those of its setting. A file that it completes is written.
    pub fn add(&mut self, trace: FinishedTrace) {
        let (setting, is_last) = (trace.setting, trace.is_last_of_count);
        let batch = self.batches.entry(setting).or_default();
        batch.add(trace);
        if batch.count > 0 && (is_last || batch.is_full()) {
            let batch = std::mem::take(batch);
            self.output.write_numbered(&batch.text, batch.count);
        } else if !batch.waits && batch.text.len() >= MOST_WAITING {
            self.write();
        }
    }

    /// Writes the traces of a setting that has no more.
    pub fn retire(&mut self, setting: u64) {
        let Some(batch) = self.batches.remove(&setting) else { return };
        if batch.count == 0 {
            return;
        }
        match batch.log_frequency {
            0 => self.output.append(&batch.text, batch.count),
            _ => self.output.write_numbered(&batch.text, batch.count),
        }
    }

    /// Writes the traces that wait for nothing.
    pub fn write(&mut self) {
        let Self { output, batches } = self;
        for batch in batches.values_mut() {
            if batch.count > 0 && (!batch.waits || batch.text.len() >= MOST_WAITING) {
                output.append(&batch.text, batch.count);
                batch.empty();
            }
        }
    }

    /// Writes everything.
    pub fn retire_all(&mut self) {
        let settings: Vec<u64> = self.batches.keys().copied().collect();
        settings.into_iter().for_each(|setting| self.retire(setting));
    }
}

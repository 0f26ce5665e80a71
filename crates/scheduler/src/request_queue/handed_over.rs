//! Requests that wait in an instance, behind the one it executes. They still wait: an instance that is free takes them
//! back and executes them instead.

use std::{collections::VecDeque, sync::Arc};

use galatea_backend::HandedOver;

/// The requests that wait in instances, in the order they were handed over, at most one for each.
pub(super) struct RequestsHandedOver<T> {
    entries: VecDeque<Entry<T>>,
}

struct Entry<T> {
    /// Of the instance it waits in.
    index: usize,
    request: T,
    handle: Arc<dyn HandedOver>,
    /// Requests of the queue that were complete when it was handed over.
    complete_before: u64,
    /// The instance was found to have begun with it, and does not know yet that this is known.
    has_begun: bool,
}

impl<T> Default for RequestsHandedOver<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new() }
    }
}

impl<T> RequestsHandedOver<T> {
    pub fn add(
        &mut self,
        index: usize,
        request: T,
        handle: Arc<dyn HandedOver>,
        complete_before: u64,
    ) {
        self.entries.push_back(Entry { index, request, handle, complete_before, has_begun: false });
    }

    /// The request that waits in this instance, which begins with it now.
    pub fn begin(&mut self, index: usize) -> Option<T> {
        self.remove(self.position(index)?)
    }

    /// Takes back the request that waits in this instance. An error with the request when it has begun.
    pub fn take_back_from(&mut self, index: usize) -> Option<Result<T, T>> {
        let position = self.position(index)?;
        let is_waiting = self.entries.get_mut(position)?.take_back();
        let request = self.remove(position)?;
        Some(if is_waiting { Ok(request) } else { Err(request) })
    }

    /// Takes back the request that has waited the longest.
    pub fn take_oldest_back(&mut self) -> Option<T> {
        let is_waiting = |entry: &mut Entry<T>| entry.take_back();
        let position = self.entries.iter_mut().position(is_waiting)?;
        self.remove(position)
    }

    /// The same if so many others became complete since it was handed over that it would be its turn in any instance.
    pub fn take_overtaken_back(&mut self, complete: u64, limit: u64) -> Option<T> {
        let oldest = self.entries.iter_mut().find(|entry| !entry.has_begun)?;
        if complete.saturating_sub(oldest.complete_before) < limit {
            return None;
        }
        self.take_oldest_back()
    }

    /// Takes back all for which this holds.
    pub fn take_all_back(&mut self, is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut taken = Vec::new();
        let mut position = 0;
        while let Some(entry) = self.entries.get_mut(position) {
            match is_wanted(&entry.request) && entry.take_back() {
                true => taken.extend(self.remove(position)),
                false => position += 1,
            }
        }
        taken
    }

    fn position(&self, index: usize) -> Option<usize> {
        self.entries.iter().position(|entry| entry.index == index)
    }

    fn remove(&mut self, position: usize) -> Option<T> {
        self.entries.remove(position).map(|entry| entry.request)
    }
}

impl<T> Entry<T> {
    fn take_back(&mut self) -> bool {
        if self.has_begun {
            return false;
        }
        self.has_begun = !self.handle.take_back();
        !self.has_begun
    }
}

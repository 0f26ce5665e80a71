//! Requests that wait in instances, behind the ones they execute. They still wait: an instance that is free takes them
//! back, first in first out, and executes them instead.

#[cfg(test)]
pub(super) mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use galatea_backend::{ReturnedRequests, WaitingBatches};

/// A request that is handed over.
pub(crate) struct PrefetchedRequest<T> {
    pub request: T,
    /// Of its batch.
    pub number: usize,
    /// What it is taken back from.
    pub waiting: Arc<dyn WaitingBatches>,
}

/// The requests that wait in the instances of a queue.
pub(super) struct PrefetchedRequests<T> {
    /// By the index of the instance.
    instances: BTreeMap<usize, InstancePrefetch<T>>,
    /// Requests handed over so far.
    count: u64,
}

/// The requests that wait in one instance.
struct InstancePrefetch<T> {
    /// In the order in which the instance gets to them.
    entries: VecDeque<Entry<T>>,
    /// So many of the first were found to have begun; the thread of the instance does not know yet.
    begun: usize,
    /// Requests of the queue that were complete when the instance last began with one.
    complete_before: u64,
    /// Numbers of batches that were taken back before their requests were added.
    taken_early: Vec<usize>,
}

struct Entry<T> {
    /// Its place among all requests of the queue that were handed over.
    place: u64,
    handed_over: PrefetchedRequest<T>,
}

/// What came of taking a request back.
pub(super) enum TakeBack<T> {
    Request(T),
    /// None waits.
    Nothing,
    /// One waits, and can be taken back in a moment.
    NotYet,
}

impl<T> Default for PrefetchedRequests<T> {
    fn default() -> Self {
        Self { instances: BTreeMap::new(), count: 0 }
    }
}

impl<T> Default for InstancePrefetch<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), begun: 0, complete_before: 0, taken_early: Vec::new() }
    }
}

impl<T> PrefetchedRequests<T> {
    /// The request waits in this instance from now on; given back when it was taken back already. `complete`: how many
    /// requests of the queue are.
    pub fn add(
        &mut self,
        index: usize,
        handed_over: PrefetchedRequest<T>,
        complete: u64,
    ) -> Option<T> {
        self.count += 1;
        let place = self.count;
        self.instances.entry(index).or_default().add(Entry { place, handed_over }, complete)
    }

    /// Requests that wait, and those that wait in this instance.
    pub fn count(&self, index: usize) -> (usize, usize) {
        let all = self.instances.values().map(InstancePrefetch::count).sum();
        (all, self.instances.get(&index).map_or(0, InstancePrefetch::count))
    }

    /// The first request that waits in this instance, which begins with it now, and its number. `complete`: as for
    /// [`PrefetchedRequests::add`].
    pub fn begin(&mut self, index: usize, complete: u64) -> Option<(usize, T)> {
        self.instances.get_mut(&index)?.begin(complete)
    }

    /// Takes back all that waits in this instance, in its order. What is left has begun, or cannot be taken back. For the
    /// thread of the instance, which has added all that it has sent.
    pub fn take_all_back_from(&mut self, index: usize) -> Vec<T> {
        let Some(mut instance) = self.instances.remove(&index) else { return Vec::new() };
        let taken = instance.take_all().into_iter().map(|(_, request)| request).collect();
        if !instance.entries.is_empty() {
            instance.taken_early.clear();
            self.instances.insert(index, instance);
        }
        taken
    }

    /// Takes back the request that has waited the longest.
    pub fn take_oldest_back(&mut self) -> TakeBack<T> {
        self.take_oldest_of(|_| true)
    }

    /// The same in instances that have begun with nothing while so many requests became complete that what waits there
    /// would have been executed by any other.
    pub fn take_overtaken_back(&mut self, complete: u64, limit: u64) -> TakeBack<T> {
        self.take_oldest_of(|i| complete.saturating_sub(i.complete_before) >= limit)
    }

    /// Takes back all for which this holds; the second list has what had to be taken back with them, in its order.
    pub fn take_back_all(&mut self, is_wanted: impl Fn(&T) -> bool) -> (Vec<T>, Vec<T>) {
        let mut taken = Vec::new();
        for instance in self.instances.values_mut() {
            let mut waiting = instance.entries.iter().skip(instance.begun);
            if waiting.any(|entry| is_wanted(&entry.handed_over.request)) {
                taken.extend(instance.take_all());
            }
        }
        taken.sort_unstable_by_key(|(place, _)| *place);
        taken.into_iter().map(|(_, request)| request).partition(is_wanted)
    }

    fn take_oldest_of(&mut self, is_meant: impl Fn(&InstancePrefetch<T>) -> bool) -> TakeBack<T> {
        let (mut nothing, mut after) = (TakeBack::Nothing, 0);
        loop {
            let first = |instance: &mut InstancePrefetch<T>| {
                let place = instance.first()?.place;
                (place > after && is_meant(instance)).then_some(place)
            };
            let firsts = self.instances.values_mut().filter_map(|i| Some((first(i)?, i)));
            let Some((place, instance)) = firsts.min_by_key(|(place, _)| *place) else {
                return nothing;
            };
            match instance.take_first() {
                TakeBack::Request((_, request)) => return TakeBack::Request(request),
                TakeBack::Nothing => {}
                TakeBack::NotYet => (nothing, after) = (TakeBack::NotYet, place),
            }
        }
    }
}

impl<T> InstancePrefetch<T> {
    fn add(&mut self, entry: Entry<T>, complete: u64) -> Option<T> {
        let number = entry.handed_over.number;
        if let Some(position) = self.taken_early.iter().position(|&early| early == number) {
            self.taken_early.swap_remove(position);
            return Some(entry.handed_over.request);
        }
        if self.entries.is_empty() {
            self.complete_before = complete;
        }
        self.entries.push_back(entry);
        None
    }

    fn count(&self) -> usize {
        self.entries.len() - self.begun
    }

    fn first(&self) -> Option<&Entry<T>> {
        self.entries.get(self.begun)
    }

    fn begin(&mut self, complete: u64) -> Option<(usize, T)> {
        self.complete_before = complete;
        self.begun = self.begun.saturating_sub(1);
        let PrefetchedRequest { request, number, .. } = self.entries.pop_front()?.handed_over;
        Some((number, request))
    }

    fn take_all(&mut self) -> Vec<(u64, T)> {
        let mut taken = Vec::new();
        while let TakeBack::Request(first) = self.take_first() {
            taken.push(first);
        }
        taken
    }

    /// The first request that waits, with its place.
    fn take_first(&mut self) -> TakeBack<(u64, T)> {
        while let Some(PrefetchedRequest { number, waiting, .. }) =
            self.first().map(|e| &e.handed_over)
        {
            match waiting.take_first_back(*number) {
                ReturnedRequests::NotYet => return TakeBack::NotYet,
                ReturnedRequests::Nothing => self.begun = self.entries.len(),
                ReturnedRequests::Batch(number) => {
                    let is_it = |entry: &Entry<T>| entry.handed_over.number == number;
                    let position = self.entries.iter().position(is_it);
                    self.begun = position.unwrap_or(self.entries.len());
                    match position.and_then(|position| self.entries.remove(position)) {
                        Some(entry) => {
                            return TakeBack::Request((entry.place, entry.handed_over.request));
                        }
                        // Its thread has sent it and not added it yet.
                        None => self.taken_early.push(number),
                    }
                }
            }
        }
        TakeBack::Nothing
    }
}

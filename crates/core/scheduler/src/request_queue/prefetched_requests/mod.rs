//! Requests that wait in instances, behind the one that each executes. They still count as queued: a free instance takes
//! them back in the order they were handed over, and executes them instead.

#[cfg(test)]
pub(super) mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use galatea_backend::{ReturnedRequests, WaitingBatches};

/// A request that is handed over to an instance.
pub(crate) struct PrefetchedRequest<T> {
    pub request: T,
    /// The number of its batch.
    pub number: usize,
    /// The waiting batches of the instance; the request is taken back from them.
    pub waiting: Arc<dyn WaitingBatches>,
}

/// The requests that wait in the instances of a queue.
pub(super) struct PrefetchedRequests<T> {
    /// By the number of the instance.
    instances: BTreeMap<usize, InstancePrefetch<T>>,
    /// The number of requests handed over so far.
    count: u64,
}

/// The requests that wait in one instance.
struct InstancePrefetch<T> {
    /// In the order in which the instance executes them.
    entries: VecDeque<Entry<T>>,
    /// The number of first entries that are known to have begun; the instance's thread has not removed them yet.
    begun: usize,
    /// The number of the queue's complete requests when the instance last began one.
    complete_before: u64,
    /// Numbers of batches that were taken back before their requests were added.
    taken_early: Vec<usize>,
}

struct Entry<T> {
    /// Its place in the order of all handed-over requests of the queue.
    place: u64,
    handed_over: PrefetchedRequest<T>,
}

/// The result of taking a request back.
pub(super) enum TakeBack<T> {
    Request(T),
    /// No request waits.
    Nothing,
    /// A request waits, but can only be taken back a moment later.
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
    /// Adds a request that now waits in this instance; returns it if it was already taken back. `complete` is the number of
    /// complete requests of the queue.
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

    /// Returns the number of all waiting requests and of those in this instance.
    pub fn count(&self, index: usize) -> (usize, usize) {
        let all = self.instances.values().map(InstancePrefetch::count).sum();
        (all, self.instances.get(&index).map_or(0, InstancePrefetch::count))
    }

    /// Removes the first waiting request of this instance, which begins it, and returns it with its number. `complete` is that
    /// of [`PrefetchedRequests::add`].
    pub fn begin(&mut self, index: usize, complete: u64) -> Option<(usize, T)> {
        self.instances.get_mut(&index)?.begin(complete)
    }

    /// Takes back all requests that wait in this instance, in order. Those left have begun or cannot be taken back. Only the
    /// instance's thread calls this, after it has added all requests that it sent.
    pub fn take_all_back_from(&mut self, index: usize) -> Vec<T> {
        let Some(mut instance) = self.instances.remove(&index) else { return Vec::new() };
        let taken = instance.take_all().into_iter().map(|(_, request)| request).collect();
        if !instance.entries.is_empty() {
            instance.taken_early.clear();
            self.instances.insert(index, instance);
        }
        taken
    }

    /// Takes back the request that has waited longest.
    pub fn take_oldest_back(&mut self) -> TakeBack<T> {
        self.take_oldest_of(|_| true)
    }

    /// Takes back the oldest request of an instance that has begun none while `limit` requests became complete. Any other
    /// instance would have executed it by then.
    pub fn take_overtaken_back(&mut self, complete: u64, limit: u64) -> TakeBack<T> {
        self.take_oldest_of(|i| complete.saturating_sub(i.complete_before) >= limit)
    }

    /// Takes back all wanted requests. The second list has those that had to be taken back with them, in order.
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

    /// Takes back the first waiting request, with its place.
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
                        // Its thread has sent the batch and not added the request yet.
                        None => self.taken_early.push(number),
                    }
                }
            }
        }
        TakeBack::Nothing
    }
}

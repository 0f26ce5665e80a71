//! Orders requests of one priority: clients take turns, and the requests of each client keep their order.
//!
//! A client is the sender of a request, if the server identifies clients. Requests without an identity count as one
//! client. Each client has a lane while it has waiting requests. A turn is `turn_items` items, or one request with more.
//! The order of turns is that of start-time fair queueing: a new lane starts at the position of the lane in turn. So its
//! first request waits for one turn of each other client at most, whatever the number of their requests.
//!
//! With one client, as on every server without identities, this is a plain queue: its one lane is read in place, without
//! a map or a heap. With several, requests move to the front one by one as a decision looks at them, at most a batch.
//! Only then is a turn counted, so abandoned requests cost no turn.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, VecDeque},
    time::Instant,
};

use super::queue_entry::QueueEntry;

#[cfg(test)]
mod tests;

/// A request in the list.
pub(super) struct Entry<T> {
    pub value: T,
    pub expires_at: Option<Instant>,
}

/// The identity of a request's client; `None` if it is not known.
type ClientKey = Option<u64>;

/// Requests of one priority in the order in which they are served.
pub(super) struct FairList<T> {
    /// Settled requests: their turns are taken, and they come before all others.
    front: VecDeque<Entry<T>>,
    /// Free lanes have no requests, and at most one other lane has none.
    lanes: Vec<ClientLane<T>>,
    free: Vec<usize>,
    /// The lanes of the clients, while there are several.
    by_client: HashMap<ClientKey, usize>,
    /// The lanes in the order of their turns, at least one.
    turns: BinaryHeap<Reverse<LaneTurn>>,
    /// The start of the last turn taken.
    clock: u64,
    next_number: u64,
    turn_items: u64,
    len: usize,
}

/// The waiting requests of one client.
struct ClientLane<T> {
    client: ClientKey,
    entries: VecDeque<Entry<T>>,
    /// The number of items served in its present turn.
    used: u64,
}

/// The next turn of a lane. The lowest start comes first, then the lowest number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LaneTurn {
    /// The number of items served from the lane before, as far as it is remembered.
    start: u64,
    number: u64,
    lane: usize,
}

impl<T: QueueEntry> FairList<T> {
    pub fn new(turn_items: u64) -> Self {
        Self {
            front: VecDeque::new(),
            lanes: vec![ClientLane::new(None)],
            free: Vec::new(),
            by_client: HashMap::new(),
            turns: BinaryHeap::from([Reverse(LaneTurn { start: 0, number: 0, lane: 0 })]),
            clock: 0,
            next_number: 1,
            turn_items,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push_back(&mut self, entry: Entry<T>) {
        let lane = self.lane_of(entry.value.client());
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.entries.push_back(entry);
            self.len += 1;
        }
    }

    /// Puts a request before all others, whoever has the turn.
    pub fn push_front(&mut self, entry: Entry<T>) {
        self.front.push_front(entry);
        self.len += 1;
    }

    /// Returns the request at `index`, which is the place of a settled request or the first place behind those.
    pub fn get(&self, index: usize) -> Option<&Entry<T>> {
        match index.checked_sub(self.front.len()) {
            None => self.front.get(index),
            Some(behind) => self.lanes.get(self.lane_in_turn()?)?.entries.get(behind),
        }
    }

    pub fn first(&self) -> Option<&Entry<T>> {
        self.get(0)
    }

    /// Settles the request at `index` after a look: if clients take turns it stays there, and the next one can be looked at.
    pub fn settle(&mut self, index: usize) {
        if self.is_shared()
            && index == self.front.len()
            && let Some(entry) = self.serve_next()
        {
            self.front.push_back(entry);
        }
    }

    /// Moves the settled request at `index` forward by this many places. Turns do not change.
    pub fn bring_forward(&mut self, index: usize, places: usize) {
        let Some(wanted) = index.checked_sub(places) else { return };
        let settled = self.front.len();
        let Some(behind) = index.checked_sub(settled) else {
            if let Some(entry) = self.front.remove(index) {
                self.front.insert(wanted, entry);
            }
            return;
        };
        let only = self.lane_in_turn().and_then(|lane| self.lanes.get_mut(lane));
        let Some(lane) = only else { return };
        let Some(entry) = lane.entries.remove(behind) else { return };
        match wanted.checked_sub(settled) {
            Some(wanted) => lane.entries.insert(wanted, entry),
            None => self.front.insert(wanted, entry),
        }
    }

    /// Removes the request at `index`, as found by [`FairList::get`]. A request that has taken no turn costs its client none.
    pub fn remove(&mut self, index: usize) -> Option<Entry<T>> {
        let entry = match index.checked_sub(self.front.len()) {
            None => self.front.remove(index)?,
            Some(behind) => {
                let lane = self.lane_in_turn()?;
                let entry = self.lanes.get_mut(lane)?.entries.remove(behind)?;
                self.update_turn();
                entry
            }
        };
        self.len -= 1;
        Some(entry)
    }

    /// Moves the first `count` requests to `taken`.
    pub fn take(&mut self, count: usize, taken: &mut Vec<T>) {
        let count = count.min(self.len);
        let settled = count.min(self.front.len());
        taken.extend(self.front.drain(..settled).map(|entry| entry.value));
        let mut left = count - settled;
        while left > 0 && self.is_shared() {
            taken.extend(self.serve_next().map(|entry| entry.value));
            left -= 1;
        }
        if let Some(lane) = self.lane_in_turn().and_then(|lane| self.lanes.get_mut(lane)) {
            taken.extend(lane.entries.drain(..left).map(|entry| entry.value));
        }
        self.len -= count;
    }

    /// Moves all requests for which `is_over` holds to `removed`.
    pub fn remove_where(&mut self, is_over: impl Fn(&Entry<T>) -> bool, removed: &mut Vec<T>) {
        let before = removed.len();
        let lists = self.lanes.iter_mut().map(|lane| &mut lane.entries);
        for list in std::iter::once(&mut self.front).chain(lists) {
            remove_from(list, &is_over, removed);
        }
        self.len -= removed.len() - before;
        self.close_empty_lanes();
    }

    /// Returns the earliest expiry of a request.
    pub fn next_expiry(&self) -> Option<Instant> {
        let waiting = self.lanes.iter().flat_map(|lane| &lane.entries);
        self.front.iter().chain(waiting).filter_map(|entry| entry.expires_at).min()
    }

    /// Returns true if several clients have requests that are not settled.
    fn is_shared(&self) -> bool {
        self.turns.len() > 1
    }

    fn lane_in_turn(&self) -> Option<usize> {
        self.turns.peek().map(|Reverse(turn)| turn.lane)
    }

    /// Returns the lane of this client, and opens it if necessary.
    fn lane_of(&mut self, client: ClientKey) -> usize {
        if self.is_shared() {
            return match self.by_client.get(&client) {
                Some(&lane) => lane,
                None => self.open_lane(client),
            };
        }
        let only = self.lane_in_turn().unwrap_or(0);
        match self.lanes.get_mut(only) {
            Some(lane) if lane.client == client => return only,
            Some(lane) if lane.entries.is_empty() => {
                (lane.client, lane.used) = (client, 0);
                return only;
            }
            Some(lane) => drop(self.by_client.insert(lane.client, only)),
            None => {}
        }
        self.open_lane(client)
    }

    fn open_lane(&mut self, client: ClientKey) -> usize {
        let index = self.free.pop().unwrap_or(self.lanes.len());
        match self.lanes.get_mut(index) {
            Some(lane) => *lane = ClientLane::new(client),
            None => self.lanes.push(ClientLane::new(client)),
        }
        self.by_client.insert(client, index);
        self.add_turn(self.clock, index);
        index
    }

    fn add_turn(&mut self, start: u64, lane: usize) {
        let number = self.next_number;
        self.next_number += 1;
        self.turns.push(Reverse(LaneTurn { start, number, lane }));
    }

    /// Takes the next request out of the lane in turn, and counts its items. Only for a shared list.
    fn serve_next(&mut self) -> Option<Entry<T>> {
        let Reverse(turn) = *self.turns.peek()?;
        let lane = self.lanes.get_mut(turn.lane)?;
        let entry = lane.entries.pop_front()?;
        lane.used += entry.value.item_count();
        self.clock = turn.start;
        self.update_turn();
        Some(entry)
    }

    /// Ends the turn of the lane in turn when it has nothing left to serve in it. A single lane has no turns.
    fn update_turn(&mut self) {
        if !self.is_shared() {
            return;
        }
        let Some(&Reverse(turn)) = self.turns.peek() else { return };
        let Some(lane) = self.lanes.get_mut(turn.lane) else { return };
        let next_items = lane.entries.front().map(|entry| entry.value.item_count());
        match next_items {
            Some(items) if lane.used == 0 || lane.used + items <= self.turn_items => {}
            Some(_) => {
                let start = turn.start + std::mem::take(&mut lane.used);
                self.turns.pop();
                self.add_turn(start, turn.lane);
            }
            None => {
                self.turns.pop();
                self.close([turn.lane]);
            }
        }
    }

    /// Forgets lanes that have no turn any more.
    fn close(&mut self, lanes: impl IntoIterator<Item = usize>) {
        for index in lanes {
            let Some(closed) = self.lanes.get_mut(index) else { continue };
            self.by_client.remove(&closed.client);
            // Frees the memory of a client that once had many requests.
            *closed = ClientLane::new(None);
            self.free.push(index);
        }
        if !self.is_shared() {
            self.become_plain();
        }
    }

    fn close_empty_lanes(&mut self) {
        if !self.is_shared() {
            return;
        }
        let is_empty = |lane: usize| self.lanes.get(lane).is_none_or(|l| l.entries.is_empty());
        let turns = std::mem::take(&mut self.turns).into_sorted_vec();
        let (mut closed, mut kept): (Vec<_>, Vec<_>) =
            turns.into_iter().partition(|Reverse(turn)| is_empty(turn.lane));
        if kept.is_empty() {
            kept.extend(closed.pop());
        }
        self.turns = kept.into();
        self.close(closed.into_iter().map(|Reverse(turn)| turn.lane));
    }

    /// Forgets all other clients, because one client is left.
    fn become_plain(&mut self) {
        const KEPT_CAPACITY: usize = 16;
        let Some(only) = self.lane_in_turn() else { return };
        if only < self.lanes.len() {
            self.lanes.swap(0, only);
            self.lanes.truncate(1);
            self.lanes.shrink_to(KEPT_CAPACITY);
        }
        self.free.clear();
        self.free.shrink_to(KEPT_CAPACITY);
        self.by_client.clear();
        self.by_client.shrink_to(KEPT_CAPACITY);
        self.turns.clear();
        self.turns.shrink_to(KEPT_CAPACITY);
        self.add_turn(self.clock, 0);
    }
}

#[cfg(test)]
impl<T> FairList<T> {
    pub fn lane_count(&self) -> usize {
        self.turns.len()
    }

    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        let lanes = self.lanes.iter_mut().flat_map(|lane| &mut lane.entries);
        self.front.iter_mut().chain(lanes).for_each(|entry| change(&mut entry.value));
    }
}

impl<T> ClientLane<T> {
    fn new(client: ClientKey) -> Self {
        Self { client, entries: VecDeque::new(), used: 0 }
    }
}

fn remove_from<T>(
    entries: &mut VecDeque<Entry<T>>,
    is_over: impl Fn(&Entry<T>) -> bool,
    removed: &mut Vec<T>,
) {
    // With equal time-outs, the expired requests are first, and no other request has to move.
    while entries.front().is_some_and(&is_over) {
        removed.extend(entries.pop_front().map(|entry| entry.value));
    }
    if entries.iter().any(&is_over) {
        let (over, kept): (VecDeque<_>, _) = entries.drain(..).partition(is_over);
        removed.extend(over.into_iter().map(|entry| entry.value));
        *entries = kept;
    }
}

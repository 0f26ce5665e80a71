//! The last traces of each model, which people look at in the console.
//!
//! A trace is filed under each model that it passed. Its record has the instants of its requests and no content of tensors.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::SystemTime,
};

use galatea_trace_timeline::{EventName, Family, ModelKey, Request, RequestTrees, TreeReport};
use galatea_types::LockExt as _;
use smallvec::SmallVec;

use crate::{
    request_trace::{Event, FEW_EVENTS, RequestTrace},
    trace_memory::MemoryShare,
};

/// The most traces of a model.
const MOST_OF_A_MODEL: usize = 20;
/// The most requests of a trace: the client's, and the first steps and calls.
const MOST_REQUESTS: usize = 100;
/// The most bytes of a client's id of a request.
const MOST_ID: usize = 256;
/// The most bytes of all of them.
const MOST_BYTES: usize = 4 << 20;
/// About the bytes that an entry of a list takes beside its content.
const ENTRY: usize = 64;

/// The last finished traces of each model: bounded in number and in bytes.
#[derive(Debug, Default)]
pub struct RecentTraces {
    kept: Mutex<KeptTraces>,
    count: AtomicU64,
}

/// A finished trace: a client's request and the requests that it caused.
#[derive(Debug)]
pub struct RecentTrace {
    /// The time at which it was finished.
    pub finished_at: SystemTime,
    /// The model that was asked for, if the client's request did not reach it.
    asked_model: Option<Box<str>>,
    requests: Vec<RecentRequest>,
    /// Requests beyond the bound.
    omitted: usize,
    held: MemoryShare,
}

/// One request of a trace. The list of models and the tree are made when somebody looks.
#[derive(Debug)]
struct RecentRequest {
    row: Request,
    /// The events of a request that has few. The row of one with many has them already.
    events: SmallVec<[Event; FEW_EVENTS]>,
    model: Option<Arc<str>>,
    version: i64,
}

#[derive(Debug, Default)]
struct KeptTraces {
    /// The traces by their numbers, which grow.
    traces: BTreeMap<u64, KeptTrace>,
    /// The numbers of the traces of each model, the oldest first.
    models: HashMap<Box<str>, VecDeque<u64>>,
    next_number: u64,
    bytes: usize,
}

#[derive(Debug)]
struct KeptTrace {
    trace: Arc<RecentTrace>,
    /// The number of models that list it.
    list_count: usize,
}

impl RecentTraces {
    /// Keeps the finished trace of a request to `model`, which it does not reach if it is refused. Its memory is counted to
    /// `held`; a trace without room is not kept.
    pub(crate) fn keep(&self, model: &str, requests: &[RequestTrace], mut held: MemoryShare) {
        if requests.is_empty() || !held.try_grow(bytes_of(model, requests)) {
            return;
        }
        let trace = RecentTrace::new(model, requests, held);
        let gone = self.kept.lock_unpoisoned().add(trace);
        self.count.fetch_add(1, Relaxed);
        drop(gone);
    }

    /// Returns the last traces of a model, the newest first.
    pub fn of_model(&self, model: &str) -> Vec<Arc<RecentTrace>> {
        let kept = self.kept.lock_unpoisoned();
        let numbers = kept.models.get(model).into_iter().flatten().rev();
        numbers.filter_map(|number| Some(kept.traces.get(number)?.trace.clone())).collect()
    }

    /// Returns the number of traces that were kept so far. It grows with each.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

impl RecentTrace {
    fn new(model: &str, requests: &[RequestTrace], held: MemoryShare) -> Self {
        let kept = &requests[..requests.len().min(MOST_REQUESTS)];
        let is_refused = kept.first().is_some_and(|root| root.model.is_none());
        Self {
            finished_at: SystemTime::now(),
            asked_model: is_refused.then(|| model.into()),
            requests: kept.iter().map(RecentRequest::new).collect(),
            omitted: requests.len() - kept.len(),
            held,
        }
    }

    /// Returns the client's request with the steps and calls below it.
    pub fn tree(&self) -> TreeReport {
        let mut models = Vec::new();
        let rows = self.requests.iter().map(|request| request.row(&mut models));
        let mut rows: Vec<Request> = rows.collect();
        if let (Some(root), Some(asked)) = (rows.first_mut(), &self.asked_model) {
            root.model = Some(index_of(asked, "", &mut models));
        }
        let numbers: HashMap<u64, u32> =
            (0..).zip(&rows).map(|(index, row)| (row.id, index)).collect();
        for row in &mut rows {
            row.parent = row.parent_id.and_then(|parent| numbers.get(&parent).copied());
        }
        let family = Family::of(&mut rows);
        let trees = RequestTrees { requests: &rows, models: &models, family: &family };
        let mut tree = trees.tree(0, MOST_REQUESTS);
        tree.omitted_count += self.omitted;
        tree
    }

    fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Returns the names of its models, each once.
    fn model_names(&self) -> impl Iterator<Item = &str> {
        let reached = self.requests.iter().map(|request| request.model.as_deref());
        let names = reached.enumerate().filter_map(|(at, name)| Some((at, name?)));
        let is_first = |at: usize, name: &str| {
            let mut before = self.requests[..at].iter();
            before.all(|request| request.model.as_deref() != Some(name))
                && self.asked_model.as_deref() != Some(name)
        };
        let reached = names.filter(move |(at, name)| is_first(*at, name)).map(|(_, name)| name);
        self.asked_model.as_deref().into_iter().chain(reached)
    }
}

impl RecentRequest {
    fn new(request: &RequestTrace) -> Self {
        let mut row = Request::new(request.id);
        row.parent_id = (request.parent_id != 0).then_some(request.parent_id);
        row.request_id = shortened(&request.request_id);
        row.is_failed = request.is_failed;
        let mut events = SmallVec::new();
        match request.events.len() {
            0..=FEW_EVENTS => events.extend_from_slice(&request.events),
            _ => record_events(&request.events, &mut row),
        }
        Self { row, events, model: request.model.clone(), version: request.version }
    }

    /// Returns its row. Its model is added to the list if it is new.
    fn row(&self, models: &mut Vec<ModelKey>) -> Request {
        let version = || itoa::Buffer::new().format(self.version).to_owned();
        let mut row = self.row.clone();
        row.model = self.model.as_deref().map(|name| index_of(name, &version(), models));
        record_events(&self.events, &mut row);
        row
    }
}

fn record_events(events: &[Event], row: &mut Request) {
    for event in events {
        let name = EventName::read(event.name);
        row.protocol = name.protocol.or(row.protocol);
        if let Some(name) = name.event {
            row.record(name, event.ns);
        }
    }
}

impl KeptTraces {
    /// Adds a trace. Returns those that leave for it.
    fn add(&mut self, trace: RecentTrace) -> Vec<Arc<RecentTrace>> {
        let mut gone = Vec::new();
        self.bytes += trace.bytes();
        while self.bytes > MOST_BYTES && self.remove_oldest(&mut gone) {}
        let number = self.next_number;
        self.next_number += 1;
        let mut kept = KeptTrace { trace: Arc::new(trace), list_count: 0 };
        let mut left = Vec::new();
        for name in kept.trace.model_names() {
            let list = match self.models.get_mut(name) {
                Some(list) => list,
                None => self.models.entry(name.into()).or_default(),
            };
            list.push_back(number);
            kept.list_count += 1;
            if list.len() > MOST_OF_A_MODEL {
                left.extend(list.pop_front());
            }
        }
        self.traces.insert(number, kept);
        left.into_iter().for_each(|number| self.unlist(number, &mut gone));
        gone
    }

    /// Counts that one list less has this trace.
    fn unlist(&mut self, number: u64, gone: &mut Vec<Arc<RecentTrace>>) {
        let Some(kept) = self.traces.get_mut(&number) else { return };
        kept.list_count -= 1;
        if kept.list_count == 0
            && let Some(kept) = self.traces.remove(&number)
        {
            self.bytes -= kept.trace.bytes();
            gone.push(kept.trace);
        }
    }

    /// Removes the oldest trace, which is the first in each of its lists. Returns whether there was one.
    fn remove_oldest(&mut self, gone: &mut Vec<Arc<RecentTrace>>) -> bool {
        let Some((number, kept)) = self.traces.pop_first() else { return false };
        for name in kept.trace.model_names() {
            let Some(list) = self.models.get_mut(name) else { continue };
            list.pop_front_if(|first| *first == number);
            if list.is_empty() {
                self.models.remove(name);
            }
        }
        self.bytes -= kept.trace.bytes();
        gone.push(kept.trace);
        true
    }
}

/// Returns about the bytes that the record of a trace takes.
fn bytes_of(model: &str, requests: &[RequestTrace]) -> usize {
    let kept = &requests[..requests.len().min(MOST_REQUESTS)];
    let of_request = |request: &RequestTrace| {
        let model = request.model.as_ref().map_or(0, |model| 2 * (model.len() + ENTRY));
        size_of::<RecentRequest>() + request.request_id.len().min(MOST_ID) + model
    };
    size_of::<RecentTrace>()
        + ENTRY
        + 2 * (model.len() + ENTRY)
        + kept.iter().map(of_request).sum::<usize>()
}

fn shortened(id: &str) -> Option<Box<str>> {
    match id.len() {
        0 => None,
        1..=MOST_ID => Some(id.into()),
        _ => {
            let beginning = id.get(..id.floor_char_boundary(MOST_ID - '…'.len_utf8()));
            Some(format!("{}…", beginning.unwrap_or_default()).into())
        }
    }
}

/// Returns the place of a version in the list, where it is added if it is new.
fn index_of(name: &str, version: &str, models: &mut Vec<ModelKey>) -> u32 {
    let is_same = |known: &ModelKey| *known.name == *name && *known.version == *version;
    let index = models.iter().position(is_same).unwrap_or_else(|| {
        models.push(ModelKey { name: name.into(), version: version.into() });
        models.len() - 1
    });
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

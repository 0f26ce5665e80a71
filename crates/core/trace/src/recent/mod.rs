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

use crate::{request_trace::RequestTrace, trace_memory::MemoryShare};

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
    requests: Vec<Request>,
    models: Vec<ModelKey>,
    /// Requests beyond the bound.
    omitted: usize,
    held: MemoryShare,
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
        let mut models = Vec::new();
        let kept = &requests[..requests.len().min(MOST_REQUESTS)];
        let mut records: Vec<Request> =
            kept.iter().map(|request| record(request, &mut models)).collect();
        let numbers: HashMap<u64, u32> =
            (0..).zip(kept).map(|(index, request)| (request.id, index)).collect();
        if let Some(root) = records.first_mut().filter(|root| root.model.is_none()) {
            root.model = Some(index_of(model, "", &mut models));
        }
        for record in &mut records {
            record.parent = record.parent_id.and_then(|parent| numbers.get(&parent).copied());
        }
        let omitted = requests.len() - kept.len();
        Self { finished_at: SystemTime::now(), requests: records, models, omitted, held }
    }

    /// Returns the client's request with the steps and calls below it.
    pub fn tree(&self) -> TreeReport {
        let mut requests = self.requests.clone();
        let family = Family::of(&mut requests);
        let trees = RequestTrees { requests: &requests, models: &self.models, family: &family };
        let mut tree = trees.tree(0, MOST_REQUESTS);
        tree.omitted_count += self.omitted;
        tree
    }

    fn bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Returns the names of its models, each once.
    fn model_names(&self) -> impl Iterator<Item = &str> {
        let is_first =
            |at: usize, name: &str| self.models[..at].iter().all(|known| &*known.name != name);
        let names = self.models.iter().map(|model| &*model.name).enumerate();
        names.filter(move |(at, name)| is_first(*at, name)).map(|(_, name)| name)
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
        size_of::<Request>() + request.request_id.len().min(MOST_ID) + model
    };
    size_of::<RecentTrace>()
        + ENTRY
        + 2 * (model.len() + ENTRY)
        + kept.iter().map(of_request).sum::<usize>()
}

fn record(request: &RequestTrace, models: &mut Vec<ModelKey>) -> Request {
    let mut record = Request::new(request.id);
    record.parent_id = (request.parent_id != 0).then_some(request.parent_id);
    record.request_id = shortened(&request.request_id);
    record.model = request
        .model
        .as_deref()
        .map(|name| index_of(name, itoa::Buffer::new().format(request.version), models));
    record.is_failed = request.is_failed;
    for event in &request.events {
        let name = EventName::read(event.name);
        record.protocol = name.protocol.or(record.protocol);
        if let Some(name) = name.event {
            record.record(name, event.ns);
        }
    }
    record
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

//! The traced requests of all files, as trees: steps of ensembles and calls of models below the request that made them.

use std::{
    collections::HashMap,
    io::{self, Read},
};

use galatea_trace_timeline::{Family, ModelKey, Request};

use crate::file::{object::TraceObject, problem::Problems, read_objects};

/// The requests of some files.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub requests: Vec<Request>,
    pub models: Vec<ModelKey>,
    pub problems: Problems,
    /// Number of objects without a fault.
    pub object_count: u64,
    model_indices: HashMap<ModelKey, u32>,
}

impl Traces {
    /// Adds the requests of a file. Numbers of traces are unique within a file: files of several runs may share a name.
    pub fn add_file(&mut self, name: &str, reader: impl Read) -> io::Result<()> {
        let first = self.requests.len();
        let mut indices = HashMap::new();
        let mut problems = std::mem::take(&mut self.problems);
        let read = read_objects(name, reader, &mut problems, |object| {
            self.object_count += 1;
            self.add(&mut indices, &object);
        });
        self.problems = problems;
        for request in &mut self.requests[first..] {
            request.parent = request.parent_id.and_then(|parent| indices.get(&parent).copied());
        }
        read
    }

    /// Returns the trees of the requests.
    pub fn family(&mut self) -> Family {
        Family::of(&mut self.requests)
    }

    fn add(&mut self, indices: &mut HashMap<u64, u32>, object: &TraceObject<'_>) {
        if object.timestamps.0.is_empty() && object.model_name.is_none() {
            // A tensor.
            return;
        }
        let model = object.model_name.as_deref().map(|name| {
            let version = object.model_version.as_ref().map_or("", |version| &version.0);
            self.model(ModelKey { name: name.into(), version: version.into() })
        });
        let index = *indices.entry(object.id).or_insert_with(|| {
            self.requests.push(Request::new(object.id));
            (self.requests.len() - 1) as u32
        });
        let request = &mut self.requests[index as usize];
        request.model = model.or(request.model);
        request.parent_id = object.parent_id.or(request.parent_id);
        if let Some(request_id) = object.request_id.as_deref().filter(|text| !text.is_empty()) {
            request.request_id = Some(request_id.into());
        }
        for stamp in &object.timestamps.0 {
            request.protocol = stamp.name.protocol.or(request.protocol);
            if let Some(event) = stamp.name.event {
                request.record(event, stamp.ns);
            }
        }
    }

    fn model(&mut self, key: ModelKey) -> u32 {
        if let Some(&index) = self.model_indices.get(&key) {
            return index;
        }
        let index = self.models.len() as u32;
        self.models.push(key.clone());
        self.model_indices.insert(key, index);
        index
    }
}

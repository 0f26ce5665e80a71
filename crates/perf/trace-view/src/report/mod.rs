//! The facts that the terminal, the JSON and the page show alike.

mod models;
mod selection;

use galatea_trace_timeline::{Extent, RequestTrees, TreeReport};
use serde::Serialize;

pub(crate) use self::{
    models::{ModelReport, SpanReport},
    selection::{Selection, SelectionError},
};
use crate::traces::Traces;

/// The version of the form of the JSON.
const FORMAT: &str = "galatea-trace/1";
/// Most steps and calls of one request that are shown.
const MOST_ROWS: usize = 1000;

/// Requests of some files: all of them by model, and some one by one. Times are in nanoseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    format: &'static str,
    pub files: Vec<String>,
    /// Number of requests that clients sent.
    pub request_count: usize,
    /// Number of steps and calls below them.
    pub step_count: usize,
    /// Time from the first event of all files to the last.
    pub covered_ns: u64,
    /// The request or the model that was asked for.
    pub selection: Selection,
    pub models: Vec<ModelReport>,
    /// The selected requests, the slowest first.
    pub requests: Vec<TreeReport>,
    /// Number of faults of the files.
    pub problem_count: u64,
    /// The first faults.
    pub problems: Vec<String>,
}

impl Report {
    /// Makes the report of the selected requests.
    ///
    /// # Errors
    /// If the files have no request like that.
    pub fn of(
        mut traces: Traces,
        files: Vec<String>,
        selection: Selection,
    ) -> Result<Self, SelectionError> {
        let family = traces.family();
        let source =
            RequestTrees { requests: &traces.requests, models: &traces.models, family: &family };
        let selected = selection.requests(&source)?;
        let count = |is_root: bool| {
            let has_times = traces.requests.iter().filter(|request| request.extent().is_some());
            has_times.filter(|request| request.parent.is_none() == is_root).count()
        };
        let covered = traces.requests.iter().filter_map(|request| request.extent());
        Ok(Self {
            format: FORMAT,
            files,
            request_count: count(true),
            step_count: count(false),
            covered_ns: covered.reduce(Extent::joined).map_or(0, Extent::length),
            models: models::reports(&source, selection.model.as_deref()),
            requests: selected.iter().map(|&root| source.tree(root, MOST_ROWS)).collect(),
            problem_count: traces.problems.count,
            problems: traces.problems.first.iter().map(ToString::to_string).collect(),
            selection,
        })
    }
}

//! Times of each model, over all its requests.

use galatea_perf_types::percentile::percentile;
use galatea_trace_timeline::{Outcome, Request, RequestTrees, Span, amounts, pieces};
use serde::Serialize;

/// The requests of a version of a model.
#[derive(Debug, Serialize)]
pub(crate) struct ModelReport {
    /// `None` for requests that reached no model.
    pub name: Option<String>,
    /// Empty if the file does not have it.
    pub version: String,
    pub request_count: usize,
    /// Number of requests that ended without a response.
    pub no_response_count: usize,
    /// Number of requests that were refused before the queue.
    pub not_queued_count: usize,
    /// Number of requests whose end the file does not have. No time counts them.
    pub unfinished_count: usize,
    pub total: Times,
    /// The spans that occur.
    pub spans: Vec<SpanReport>,
}

/// Times of several requests, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Times {
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

/// A span of a model's requests.
#[derive(Debug, Serialize)]
pub(crate) struct SpanReport {
    pub span: Span,
    #[serde(flatten)]
    pub times: Times,
    /// Part of the time of all requests, from 0 to 1.
    pub share: f64,
}

/// Returns the models, or the one of this name. The first took the most time.
pub(super) fn reports(source: &RequestTrees<'_>, name: Option<&str>) -> Vec<ModelReport> {
    let models = &source.models;
    let mut requests: Vec<Vec<u32>> = vec![Vec::new(); models.len() + 1];
    for (index, request) in source.requests.iter().enumerate() {
        if request.extent().is_some() {
            requests[request.model.map_or(models.len(), |model| model as usize)].push(index as u32);
        }
    }
    let keys = models.iter().map(Some).chain([None]);
    let all = keys.zip(&requests).filter(|(_, requests)| !requests.is_empty());
    let wanted =
        all.filter(|(key, _)| name.is_none_or(|name| key.is_some_and(|key| &*key.name == name)));
    let mut reports: Vec<ModelReport> = wanted
        .map(|(key, requests)| ModelReport {
            name: key.map(|key| key.name.to_string()),
            version: key.map(|key| key.version.to_string()).unwrap_or_default(),
            ..report(source, requests)
        })
        .collect();
    let time = |report: &ModelReport| report.total.mean_ns * report.request_count as f64;
    reports.sort_by(|a, b| time(b).total_cmp(&time(a)));
    reports
}

fn report(source: &RequestTrees<'_>, indices: &[u32]) -> ModelReport {
    let requests = || indices.iter().map(|&index| &source.requests[index as usize]);
    let count = |outcome| requests().filter(|request| request.outcome() == outcome).count();
    let is_finished = |request: &Request| request.outcome() != Outcome::Unfinished;
    let finished = indices.iter().filter(|&&index| is_finished(&source.requests[index as usize]));
    let amounts: Vec<[u64; Span::COUNT]> = finished
        .map(|&index| {
            let request = &source.requests[index as usize];
            amounts(&pieces(request, source.steps(index)))
        })
        .collect();
    let total = times(amounts.iter().map(|amounts| amounts.iter().sum()).collect());
    let span = |&span: &Span| {
        let times = times(amounts.iter().map(|amounts| amounts[span as usize]).collect());
        let share = if total.mean_ns > 0.0 { times.mean_ns / total.mean_ns } else { 0.0 };
        SpanReport { span, times, share }
    };
    ModelReport {
        name: None,
        version: String::new(),
        request_count: indices.len(),
        no_response_count: count(Outcome::NoResponse),
        not_queued_count: count(Outcome::NotQueued),
        unfinished_count: count(Outcome::Unfinished),
        total,
        spans: Span::ALL.iter().map(span).filter(|span| span.times.max_ns > 0).collect(),
    }
}

fn times(mut times: Vec<u64>) -> Times {
    times.sort_unstable();
    let at = |percent| percentile(&times, percent).unwrap_or_default();
    let sum: f64 = times.iter().map(|&ns| ns as f64).sum();
    Times {
        mean_ns: sum / times.len().max(1) as f64,
        p50_ns: at(50.0),
        p99_ns: at(99.0),
        max_ns: at(100.0),
    }
}

//! One request with its steps and calls.

use serde::Serialize;

use super::{EventReport, ReportSource};
use crate::{
    event::Event,
    spans::{Span, pieces},
    traces::{
        family::Relative,
        request::{Extent, Outcome},
    },
};

/// Most steps and calls of one request that are shown.
const MOST_ROWS: usize = 1000;

/// A request and all below it.
#[derive(Debug, Serialize)]
pub(crate) struct TreeReport {
    /// The first event, by the server's monotonic clock.
    pub begin_ns: u64,
    /// Time from the first event to the last, of the request and all below it.
    pub length_ns: u64,
    /// The request, then those below it, each followed by its own.
    pub rows: Vec<RowReport>,
    /// Number of steps and calls that are left out.
    pub omitted_count: usize,
}

/// A request, a step or a call. Its times count from the first event of its tree.
#[derive(Debug, Serialize)]
pub(crate) struct RowReport {
    /// Number of requests above it.
    pub depth: u32,
    pub id: u64,
    pub request_id: Option<String>,
    pub parent_id: Option<u64>,
    pub model: Option<String>,
    pub version: Option<String>,
    pub protocol: Option<&'static str>,
    pub outcome: &'static str,
    pub responses: u32,
    pub from_ns: u64,
    pub total_ns: u64,
    /// The spans in the order of time, without gaps.
    pub pieces: Vec<PieceReport>,
    pub events: Vec<EventReport>,
    #[serde(skip)]
    pub is_answered: bool,
}

/// A part of the time of a request.
#[derive(Debug, Serialize)]
pub(crate) struct PieceReport {
    pub span: Span,
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Returns the tree below a request with times.
pub(super) fn report(source: &ReportSource<'_>, root: u32) -> TreeReport {
    let requests = &source.traces.requests;
    let extent = |relative: &Relative| requests[relative.request as usize].extent();
    let rows = || source.family.tree(root).filter(|relative| extent(relative).is_some());
    let shown: Vec<Relative> = rows().take(MOST_ROWS).collect();
    let whole = rows().filter_map(|relative| extent(&relative)).reduce(Extent::joined);
    let whole = whole.unwrap_or(Extent { from: 0, to: 0 });
    TreeReport {
        begin_ns: whole.from,
        length_ns: whole.length(),
        omitted_count: rows().count() - shown.len(),
        rows: shown.iter().map(|&relative| row(source, relative, whole.from)).collect(),
    }
}

fn row(source: &ReportSource<'_>, relative: Relative, begin: u64) -> RowReport {
    let request = &source.traces.requests[relative.request as usize];
    let model = request.model.map(|model| &source.traces.models[model as usize]);
    let version = model.map(|model| model.version.to_string());
    let mut events: Vec<EventReport> = Event::ALL
        .into_iter()
        .filter_map(|event| Some(EventReport::of(event, request.instant(event)? - begin)))
        .collect();
    events.sort_by_key(|event| event.at_ns);
    let pieces =
        pieces(request, source.steps(relative.request)).into_iter().map(|piece| PieceReport {
            span: piece.span,
            from_ns: piece.extent.from - begin,
            to_ns: piece.extent.to - begin,
        });
    RowReport {
        depth: relative.depth,
        id: request.id,
        request_id: request.request_id.as_deref().map(str::to_owned),
        parent_id: request.parent_id,
        model: model.map(|model| model.name.to_string()),
        version: version.filter(|version| !version.is_empty()),
        protocol: request.protocol.map(|protocol| protocol.name()),
        outcome: request.outcome().name(),
        responses: request.responses,
        from_ns: request.extent().map_or(0, |extent| extent.from - begin),
        total_ns: request.total(),
        pieces: pieces.collect(),
        events,
        is_answered: request.outcome() == Outcome::Answered,
    }
}

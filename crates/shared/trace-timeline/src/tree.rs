//! A request with the steps and calls below it, as it is drawn.

use serde::Serialize;

use crate::{
    event::Event,
    family::{Family, Relative},
    request::{Extent, ModelKey, Outcome, Request},
    spans::{Span, pieces},
};

/// Requests with the steps and calls below them.
#[derive(Clone, Copy, Debug)]
pub struct RequestTrees<'a> {
    /// The requests.
    pub requests: &'a [Request],
    /// The models that the requests name by their index.
    pub models: &'a [ModelKey],
    /// Which request caused which.
    pub family: &'a Family,
}

/// A request and all below it.
#[derive(Debug, Serialize)]
pub struct TreeReport {
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
pub struct RowReport {
    /// Number of requests above it.
    pub depth: u32,
    /// The server's number of the trace.
    pub id: u64,
    /// The client's name of the request.
    pub request_id: Option<String>,
    /// The trace that it is a part of.
    pub parent_id: Option<u64>,
    /// The model; `None` if the request reached none.
    pub model: Option<String>,
    /// The version of the model.
    pub version: Option<String>,
    /// The protocol by which it came.
    pub protocol: Option<&'static str>,
    /// The words of its [`Outcome`].
    pub outcome: &'static str,
    /// Number of responses.
    pub responses: u32,
    /// Its first event.
    pub from_ns: u64,
    /// Time from its first event to its last.
    pub total_ns: u64,
    /// The spans in the order of time, without gaps.
    pub pieces: Vec<PieceReport>,
    /// The events in the order of time.
    pub events: Vec<EventReport>,
    /// The server answered it, or the request above it.
    #[serde(skip)]
    pub is_answered: bool,
}

/// A part of the time of a request.
#[derive(Debug, Serialize)]
pub struct PieceReport {
    /// The work of the server in that time.
    pub span: Span,
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

/// An event of a request.
#[derive(Debug, Serialize)]
pub struct EventReport {
    /// The name that people read.
    pub name: &'static str,
    /// Time since the first event of the tree.
    pub at_ns: u64,
}

impl RequestTrees<'_> {
    /// Returns the extents of the steps and calls of a request.
    pub fn steps(&self, request: u32) -> impl Iterator<Item = Extent> {
        let extent = |&child: &u32| self.requests[child as usize].extent();
        self.family.children(request).iter().filter_map(extent)
    }

    /// Returns the tree below a request. At most `most_rows` requests with times are in it, the others are counted.
    pub fn tree(&self, root: u32, most_rows: usize) -> TreeReport {
        let extent = |relative: &Relative| self.requests[relative.request as usize].extent();
        let rows = || self.family.tree(root).filter(|relative| extent(relative).is_some());
        let shown: Vec<Relative> = rows().take(most_rows).collect();
        let whole = rows().filter_map(|relative| extent(&relative)).reduce(Extent::joined);
        let whole = whole.unwrap_or(Extent { from: 0, to: 0 });
        TreeReport {
            begin_ns: whole.from,
            length_ns: whole.length(),
            omitted_count: rows().count() - shown.len(),
            rows: shown.iter().map(|&relative| self.row(relative, whole.from)).collect(),
        }
    }

    fn row(&self, relative: Relative, begin: u64) -> RowReport {
        let request = &self.requests[relative.request as usize];
        let model = request.model.map(|model| &self.models[model as usize]);
        let version = model.map(|model| model.version.to_string());
        let mut events: Vec<EventReport> = Event::ALL
            .into_iter()
            .filter_map(|event| {
                Some(EventReport { name: event.name(), at_ns: request.instant(event)? - begin })
            })
            .collect();
        events.sort_by_key(|event| event.at_ns);
        let pieces = pieces(request, self.steps(relative.request)).into_iter();
        let pieces = pieces.map(|piece| PieceReport {
            span: piece.span,
            from_ns: piece.extent.from - begin,
            to_ns: piece.extent.to - begin,
        });
        let outcome = request.outcome();
        RowReport {
            depth: relative.depth,
            id: request.id,
            request_id: request.request_id.as_deref().map(str::to_owned),
            parent_id: request.parent_id,
            model: model.map(|model| model.name.to_string()),
            version: version.filter(|version| !version.is_empty()),
            protocol: request.protocol.map(|protocol| protocol.name()),
            outcome: outcome.name(),
            responses: request.responses,
            from_ns: request.extent().map_or(0, |extent| extent.from - begin),
            total_ns: request.total(),
            pieces: pieces.collect(),
            events,
            is_answered: matches!(outcome, Outcome::Answered | Outcome::Ended),
        }
    }
}

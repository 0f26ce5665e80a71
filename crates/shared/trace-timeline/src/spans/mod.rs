//! Divides the time of a request into spans.

use serde::Serialize;

use crate::{
    event::Event,
    request::{Extent, Request},
};

/// A part of the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// The front end reads the request from the network.
    Receive,
    /// The request waits for an instance.
    Queue,
    /// The backend prepares the inputs.
    Input,
    /// The model runs.
    Compute,
    /// The backend makes the outputs.
    Output,
    /// Steps of an ensemble run.
    Steps,
    /// The front end writes the response to the network.
    Send,
    /// All else: decoding, encoding, and ways between threads.
    Other,
}

impl Span {
    /// The number of spans.
    pub const COUNT: usize = 8;
    /// All spans, in the order in which they usually happen.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Receive,
        Self::Queue,
        Self::Input,
        Self::Compute,
        Self::Output,
        Self::Steps,
        Self::Send,
        Self::Other,
    ];

    /// Returns the name that people read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Queue => "queue",
            Self::Input => "input",
            Self::Compute => "compute",
            Self::Output => "output",
            Self::Steps => "steps",
            Self::Send => "send",
            Self::Other => "other",
        }
    }

    /// Returns the character of its bars.
    pub fn glyph(self) -> char {
        match self {
            Self::Receive => '‹',
            Self::Queue => '░',
            Self::Input => '▒',
            Self::Compute => '█',
            Self::Output => '▓',
            Self::Steps => '═',
            Self::Send => '›',
            Self::Other => '·',
        }
    }
}

/// A part of a request's time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The span that it is a part of.
    pub span: Span,
    /// The time that it takes.
    pub extent: Extent,
}

/// A span between two events.
struct SpanRule {
    span: Span,
    start: Event,
    end: Event,
}

const fn rule(span: Span, start: Event, end: Event) -> SpanRule {
    SpanRule { span, start, end }
}

/// The spans between two events each. A moment in several belongs to the first.
const RULES: [SpanRule; 6] = [
    rule(Span::Input, Event::ComputeStart, Event::ComputeInputEnd),
    rule(Span::Compute, Event::ComputeInputEnd, Event::ComputeOutputStart),
    rule(Span::Output, Event::ComputeOutputStart, Event::ComputeEnd),
    rule(Span::Queue, Event::QueueStart, Event::ComputeStart),
    rule(Span::Receive, Event::ReceiveStart, Event::ReceiveEnd),
    rule(Span::Send, Event::SendStart, Event::SendEnd),
];

/// Divides the time of a request into pieces without gaps, from its first event to its last.
///
/// `steps` are the extents of its children, in the order of their beginning. They count while the request itself is in no
/// other span.
pub fn pieces(request: &Request, steps: impl Iterator<Item = Extent>) -> Vec<Piece> {
    let Some(whole) = request.extent() else { return Vec::new() };
    let own: Vec<Piece> = RULES.iter().filter_map(|rule| rule.piece(request)).collect();
    let steps = joined(steps);
    let mut borders: Vec<u64> = own.iter().map(|piece| &piece.extent).chain(&steps).fold(
        vec![whole.from, whole.to],
        |mut borders, extent| {
            borders.extend([extent.from, extent.to]);
            borders
        },
    );
    borders.retain(|border| (whole.from..=whole.to).contains(border));
    borders.sort_unstable();
    borders.dedup();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut steps = steps.into_iter().peekable();
    for border in borders.windows(2) {
        let extent = Extent { from: border[0], to: border[1] };
        while steps.next_if(|step| step.to <= extent.from).is_some() {}
        let is_step = steps.peek().is_some_and(|step| step.from <= extent.from);
        let span = match own.iter().find(|piece| holds(piece.extent, extent)) {
            Some(piece) => piece.span,
            None if is_step => Span::Steps,
            None => Span::Other,
        };
        match pieces.last_mut() {
            Some(last) if last.span == span => last.extent.to = extent.to,
            _ => pieces.push(Piece { span, extent }),
        }
    }
    pieces
}

impl SpanRule {
    fn piece(&self, request: &Request) -> Option<Piece> {
        let extent = Extent { from: request.instant(self.start)?, to: request.instant(self.end)? };
        (extent.from < extent.to).then_some(Piece { span: self.span, extent })
    }
}

fn holds(outer: Extent, inner: Extent) -> bool {
    outer.from <= inner.from && inner.to <= outer.to
}

/// Joins extents that overlap. `sorted` by their beginning.
fn joined(sorted: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut joined: Vec<Extent> = Vec::new();
    for extent in sorted {
        match joined.last_mut() {
            Some(last) if extent.from <= last.to => *last = last.joined(extent),
            _ => joined.push(extent),
        }
    }
    joined
}

/// Returns the nanoseconds of each span, in the order of [`Span::ALL`].
pub fn amounts(pieces: &[Piece]) -> [u64; Span::COUNT] {
    let mut amounts = [0; Span::COUNT];
    for piece in pieces {
        amounts[piece.span as usize] += piece.extent.length();
    }
    amounts
}

#[cfg(test)]
mod tests;

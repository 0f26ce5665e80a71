//! A traced request over time: its events, the spans between them, and the steps and calls below it.
//!
//! A [`Request`] is a small record of the instants of its [`Event`]s. [`pieces`] divides its time into [`Span`]s without gaps.
//! [`RequestTrees`] finds the steps and calls below each request, and describes a tree as it is drawn.
//! `galatea trace` draws the requests of files with it, the console those that the server traced last.
//!
//! **Invariants.** Whatever a broken file has, the pieces of a request follow each other and add up to its time, and each
//! request is in one tree.

#![warn(missing_docs)]

mod event;
mod family;
mod request;
mod spans;
mod tree;

pub use self::{
    event::{Event, EventName, Protocol},
    family::{Family, Relative},
    request::{Extent, ModelKey, Outcome, Request},
    spans::{Piece, Span, amounts, pieces},
    tree::{EventReport, PieceReport, RequestTrees, RowReport, TreeReport},
};

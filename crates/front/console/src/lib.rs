//! The web console: its page, its data about a running server, and the document that describes the HTTP routes.
//!
//! [`page`] has the files of the page, [`Console`] the events that keep it up to date, [`traces`] the last traced requests of a
//! model, and [`openapi`] the document.
//! The HTTP front end sends them to clients.
//!
//! The data comes from counters that exist anyway. One thread reads them: every five seconds for a history of the last
//! quarter of an hour, and once a second for all watchers. Request durations are recorded only while somebody watches.
//!
//! **Invariants.** This crate has no sockets and no HTTP messages, only bytes and header values. No request passes
//! through it. All that it keeps and sends is bounded, whatever models and clients there are.

#![warn(missing_docs)]

mod about;
mod events;
mod history;
pub mod openapi;
pub mod page;
mod sources;
mod state;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
pub mod traces;
mod words;

pub use about::SharedAbout;
pub use events::{Console, END_OF_SERVER, END_OF_SLOW_WATCHER, WatchError, Watcher};
pub use sources::ConsoleSources;

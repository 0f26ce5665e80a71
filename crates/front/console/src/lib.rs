//! The web console: its page, what it shows of a running server, and the document that describes the HTTP routes.
//!
//! [`page`] has the files of the page, [`Console`] the events that keep it up to date, [`openapi`] the document. The HTTP
//! front end gives them to clients.
//!
//! What is shown comes from counters that exist anyway. One thread reads them: every five seconds for a history of the last
//! quarter of an hour, and once a second for all who watch. Only while somebody does, durations of requests are recorded.
//!
//! **Invariants.** No sockets and no message of HTTP: bytes and the values of headers leave this crate. Nothing here is on
//! the way of a request. What is kept, sent and written down for clients is bounded, whatever models and clients there are.

#![warn(missing_docs)]

mod about;
mod events;
mod history;
pub mod openapi;
pub mod page;
mod state;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod words;

pub use about::SharedAbout;
pub use events::{Console, END_OF_SERVER, END_OF_SLOW_WATCHER, WatchError, Watcher};

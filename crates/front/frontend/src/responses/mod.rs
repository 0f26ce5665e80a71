//! Passes responses from the thread of the model that makes them to the connection that writes them.
//!
//! The model's thread works for other clients too, so it must never wait for a connection. Responses that a client does
//! not read pile up in memory, up to a bound on their bytes. Beyond it the server cuts the client off and cancels its
//! requests.

mod queue;
mod receiver;
mod sync;
#[cfg(test)]
mod tests;

pub use queue::{KeyedResponse, OnOverflow, Overflow, ResponseKey};
pub use receiver::ResponseReceiver;

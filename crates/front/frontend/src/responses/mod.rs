//! Responses between the thread of the model that makes them and the connection that writes them.
//!
//! The model's thread works for other clients too, so it must never wait for a connection. What a client does not read
//! therefore piles up in memory, up to a bound on its bytes; beyond it the client is cut off and its requests are
//! cancelled.

mod queue;
mod receiver;
mod sync;
#[cfg(test)]
mod tests;

pub use queue::{KeyedResponse, OnOverflow, Overflow, ResponseKey};
pub use receiver::ResponseReceiver;

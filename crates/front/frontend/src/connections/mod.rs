//! All connections of a server: how many there may be, and how long each may keep it waiting.
//!
//! Every connection has an [`Activity`], which its stream and its protocol keep up to date with plain stores. One look
//! over all of them every now and then ([`ConnectionLimits::sweep`]) finds those that keep the server waiting: no timer
//! is set per request or read.

mod activity;
mod limits;
mod registry;
mod settings;
#[cfg(test)]
mod tests;

pub use activity::{Activity, CallGuard, Framing, ReceivingGuard};
pub use limits::{ConnectionCounts, ConnectionLimits};
pub(crate) use registry::Slot;
pub use settings::ConnectionSettings;

//! All connections of a server, with limits on their number and on the time that each may keep the server waiting.
//!
//! The stream and the protocol of a connection update its [`Activity`] with plain stores. A regular sweep over all
//! connections ([`ConnectionLimits::sweep`]) finds the overdue ones, so no timer is set per request or read.

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

//! The parts of a server, beside the engine, that the console shows.

use std::sync::Arc;

use galatea_frontend::ConnectionLimits;
use galatea_trace::RecentTraces;

use crate::about::SharedAbout;

/// The parts of a server, beside the engine, that the console shows.
#[derive(Debug, Default)]
pub struct ConsoleSources {
    /// The connections of all front ends.
    pub connections: Arc<ConnectionLimits>,
    /// The ports, options and runtimes.
    pub about: SharedAbout,
    /// Names of the groups of calls that need a header.
    pub restricted: Vec<&'static str>,
    /// The last traced requests, if they are kept.
    pub traces: Option<Arc<RecentTraces>>,
}

//! What a command that people start for a first look tells them when the server serves, and when it has ended.

use std::fmt::Debug;

/// Words of the command that serves, in place of those of the log.
pub trait StartTexts: Debug + Send + Sync {
    /// When it serves.
    fn welcome(&self, started: &StartedServer) -> String;

    /// When it was asked to stop, and has.
    fn farewell(&self) -> String;
}

/// A server as it has started.
#[derive(Debug, Default)]
pub struct StartedServer {
    /// A line for a shell that asks one of the models; empty without HTTP.
    pub command: String,
    /// Where HTTP is served, as a client on this machine names it.
    pub http: Option<String>,
    pub grpc: Option<String>,
    pub metrics: Option<String>,
    /// Whether HTTP is served to this machine alone.
    pub is_local: bool,
    /// The address of the console for a browser.
    pub console: Option<String>,
}

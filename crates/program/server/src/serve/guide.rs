//! Texts for people who start a command for a first look: once the server serves, and after it has ended.

use std::fmt::Debug;

/// Texts that replace those of the log.
pub trait StartTexts: Debug + Send + Sync {
    /// Returns the text for a server that serves.
    fn welcome(&self, started: &StartedServer) -> String;

    /// Returns the text for a server that was asked to stop and has ended.
    fn farewell(&self) -> String;
}

/// The facts about a started server.
#[derive(Debug, Default)]
pub struct StartedServer {
    /// A shell command that asks one of the models; empty without HTTP.
    pub command: String,
    /// The address of HTTP for a client on this machine.
    pub http: Option<String>,
    pub grpc: Option<String>,
    pub metrics: Option<String>,
    /// Only this machine can reach HTTP.
    pub is_local: bool,
    /// The address of the console for a browser.
    pub console: Option<String>,
}

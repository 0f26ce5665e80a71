//! Options for access to the server.

use galatea_command_line::{Kind, options};

use super::row::Row;

pub const SECURITY: &[Row] = options! {
    /// File (TOML) with API keys, tokens, certificates, and their roles for models. With it, every request except
    /// health checks needs credentials. The server reads it again when it changes. Without it, anybody may do anything.
    "auth-policy" => Row::of(Kind::Text).fills(|o| &mut o.serve.auth_policy),
    /// Start with safe defaults for a server that strangers can reach: it listens on this machine only, serves no
    /// console, isolates Python models (standard) and limits the requests in progress of one client. Other options
    /// override them. Without --auth-policy, nobody may load models, register memory or change settings. Python models
    /// may not load models.
    "hardened" => Row::of(Kind::Switch).fills(|o| &mut o.serve.is_hardened),
};

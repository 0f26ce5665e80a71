//! Options for access to the server.

use galatea_command_line::{Kind, options};

use super::row::Row;

pub const SECURITY: &[Row] = options! {
    /// File (TOML) that says who may do what: API keys, tokens, certificates, and their roles for models. With it
    /// every request but health checks must say who sends it. It is read again when it changes. Without it anybody
    /// may do anything.
    "auth-policy" => Row::of(Kind::Text).fills(|o| &mut o.serve.auth_policy),
    /// Start with the defaults of a server that strangers may reach, where no other option says otherwise: it listens
    /// to this machine alone, serves no console, isolates Python models (standard) and limits what one client may
    /// have in progress. Without --auth-policy nobody may load models, register memory or change settings; Python models
    /// may not load models either.
    "hardened" => Row::of(Kind::Switch).fills(|o| &mut o.serve.is_hardened),
};

//! Options of who may use the server.

use galatea_command_line::Kind;

use super::row::Row;

pub const SECURITY: &[Row] = &[Row::new(
    "hardened",
    Kind::Switch,
    "Start with the defaults of a server that strangers may reach, where no other option says \
     otherwise: it listens to this machine alone, and serves no console.",
)
.stores(|o, _| {
    o.is_hardened = true;
    Ok(())
})];

//! Options that say who may call what, and which headers reach the models.

use galatea_command_line::{BadValue, Occurrence, ValueError};
use galatea_frontend::{HeaderForwarding, RestrictedApis, RestrictionError};

use super::{error::Stored, serve_flags::ServeFlags};

pub(super) fn http_restricted_api(flags: &mut ServeFlags, given: &Occurrence) -> Stored {
    Ok(restrict(&mut flags.serve.http_options.restricted_apis, given, "api", "")?)
}

pub(super) fn grpc_restricted_protocol(flags: &mut ServeFlags, given: &Occurrence) -> Stored {
    let apis = &mut flags.serve.grpc_options.restricted_protocols;
    Ok(restrict(apis, given, "protocol", "triton-grpc-protocol-")?)
}

/// Adds one rule. `what` is what the protocol calls a group of calls, and `prefix` stands before the header's name.
pub(super) fn restrict(
    apis: &mut RestrictedApis,
    given: &Occurrence,
    what: &'static str,
    prefix: &str,
) -> Result<(), BadValue> {
    apis.restrict(&given.text, what, prefix).map_err(|error| match error {
        RestrictionError::Malformed => given.malformed("'<config name>:<setting>=<value>'"),
        error => given.bad(ValueError::Meaning(error.to_string())),
    })
}

/// The headers whose names match the expression.
pub(super) fn header_forwarding(given: &Occurrence) -> Result<HeaderForwarding, BadValue> {
    HeaderForwarding::matching(&given.text)
        .map_err(|error| given.bad(ValueError::Meaning(error.to_string())))
}

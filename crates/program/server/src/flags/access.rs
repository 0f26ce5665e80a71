//! Options that restrict calls, and options that forward headers to the models.

use galatea_command_line::{BadValue, Occurrence, ValueError};
use galatea_frontend::{HeaderForwarding, RestrictedApis, RestrictionError};

use super::{error::StoreResult, serve_flags::ServeFlags};

pub(super) fn http_restricted_api(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    Ok(restrict(&mut flags.serve.http_options.restricted_apis, given, "api", "")?)
}

pub(super) fn grpc_restricted_protocol(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let apis = &mut flags.serve.grpc_options.restricted_protocols;
    Ok(restrict(apis, given, "protocol", "triton-grpc-protocol-")?)
}

/// Adds one rule. `what` is the protocol's word for a group of calls, and `prefix` precedes the header's name.
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

/// Returns the rule for headers whose names match the expression.
pub(super) fn header_forwarding(given: &Occurrence) -> Result<HeaderForwarding, BadValue> {
    HeaderForwarding::matching(&given.text)
        .map_err(|error| given.bad(ValueError::Meaning(error.to_string())))
}

//! Texts about a call that has panicked.

/// The name of a call in the log.
pub(crate) const CALL: &str = "a gRPC call";
/// The message for its client.
pub(crate) const INTERNAL_ERROR: &str = "an internal error ended this call";

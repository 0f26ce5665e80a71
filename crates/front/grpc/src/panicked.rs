//! What is said of a call that has panicked.

/// The name of a call in the log.
pub(crate) const CALL: &str = "a gRPC call";
/// What its client is told.
pub(crate) const INTERNAL_ERROR: &str = "an internal error ended this call";

//! The result of checking a clause.

use std::time::Duration;

/// `Err` describes how the clause is violated.
pub(super) type Outcome = Result<(), String>;

/// A time limit that only a hanging test reaches.
pub(super) const LONG: Duration = Duration::from_secs(30);

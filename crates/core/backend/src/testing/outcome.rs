//! What the check of a clause comes to.

use std::time::Duration;

/// `Err` describes how the clause is violated.
pub(super) type Outcome = Result<(), String>;

/// Longer than anything here takes; only what never happens gets there.
pub(super) const LONG: Duration = Duration::from_secs(30);

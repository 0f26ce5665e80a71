//! Makes a panic during the load of a model fail that load.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use galatea_types::{Error, Result};

/// Does a part of a load and returns a panic as its error. The part must leave other data valid wherever it ends: the ready
/// models and their records are each changed in one step.
pub(super) fn guarded<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| Err(error_of(&*panic)))
}

/// Returns the error for a panic; the panic itself is in the log, with its place.
fn error_of(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("loading panicked: {}", text.unwrap_or("no reason is known")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_kept() {
        let reason = |part: fn() -> Result<()>| guarded(part).expect_err("fails").to_string();
        assert_eq!(reason(|| panic!("expected")), "loading panicked: expected");
        assert_eq!(reason(|| panic!("{} of 2", 1)), "loading panicked: 1 of 2");
        assert_eq!(reason(|| Err(Error::internal("plain"))), "plain");
    }
}

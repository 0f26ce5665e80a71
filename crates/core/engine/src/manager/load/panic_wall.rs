//! A panic while a model is loaded fails that load.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use galatea_types::{Error, Result};

/// Does a part of a load; a panic is its error. What the part changes besides must be right whenever it ends: the
/// models that are ready and their records are changed in one step each.
pub(super) fn guarded<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| Err(error_of(&*panic)))
}

/// The panic itself is in the log, with its place.
fn error_of(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::internal(format!("loading ended in a panic: {}", text.unwrap_or("no reason is known")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_panic_is_kept() {
        let reason = |part: fn() -> Result<()>| guarded(part).expect_err("fails").to_string();
        assert_eq!(reason(|| panic!("expected")), "loading ended in a panic: expected");
        assert_eq!(reason(|| panic!("{} of 2", 1)), "loading ended in a panic: 1 of 2");
        assert_eq!(reason(|| Err(Error::internal("plain"))), "plain");
    }
}

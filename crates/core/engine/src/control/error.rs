//! The errors of operations on the control threads that have no result of their own.

use galatea_types::{Code, Error};

pub(super) fn queue_full(what: &str, limit: usize) -> Error {
    let text = format!("too many {what} are waiting, the limit is {limit}: try again later");
    Error::new(Code::Exhausted, text)
}

pub(super) fn exiting() -> Error {
    Error::unavailable("Server exiting")
}

pub(super) fn no_thread() -> Error {
    Error::unavailable("no thread can be started for the operation: try again later")
}

pub(super) fn panicked() -> Error {
    Error::internal("the operation ended without a result")
}

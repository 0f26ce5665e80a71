//! The errors of requests that are not executed, in the words clients match on.

use galatea_types::Error;

/// The scheduler takes no more requests. `prefix`: [`galatea_types::InferRequest::message_prefix`].
pub(crate) fn closed(prefix: &str) -> Error {
    Error::unavailable(format!(
        "{prefix}Server is stopping, scheduler for model has stopped accepting new inference requests"
    ))
}

/// The queue has as many requests as it may.
pub(crate) fn queue_full(prefix: &str) -> Error {
    Error::unavailable(format!("{prefix}Exceeds maximum queue size"))
}

/// No instance works that could execute the request.
pub(crate) fn no_working_instance(model: &str, reason: &Error) -> Error {
    Error::unavailable(format!("model '{model}' has no working instance: {reason}"))
}

/// The request waited longer than it may.
pub(crate) fn expired() -> Error {
    Error::unavailable("Request timeout expired")
}

/// Nobody waits for the response any more.
pub(crate) fn cancelled() -> Error {
    Error::cancelled("Request was cancelled")
}

/// The backend is done with a request and has not answered it.
pub(crate) fn unanswered(model: &str) -> Error {
    Error::internal(format!("the backend of model '{model}' gave no response to the request"))
}

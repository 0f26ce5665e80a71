//! The panic boundary: a panic in a handler ends one request and nothing else.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// Returns the output of `handler`, or `None` if it panics. `what` names the request in the log line. The panic hook
/// has received the panic's own text.
///
/// Unwind safety: everything that the future borrowed is dropped with it, and nothing else of it is used again.
pub async fn catch_panic<F: Future>(what: &str, handler: F) -> Option<F::Output> {
    let mut handler = pin!(handler);
    poll_fn(|context| match catch_panic_in_poll(what, || handler.as_mut().poll(context)) {
        Some(poll) => poll.map(Some),
        None => Poll::Ready(None),
    })
    .await
}

/// Catches a panic in one poll of, for example, a body. After `None` the caller must not poll again.
pub fn catch_panic_in_poll<T>(what: &str, step: impl FnOnce() -> T) -> Option<T> {
    let caught = catch_unwind(AssertUnwindSafe(step));
    caught.inspect_err(|_| log::error!("a panic ended {what}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_panic_after_an_await_is_caught() {
        let handler = async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "in a handler");
            7
        };
        assert_eq!(catch_panic("a request", handler).await, None);
        assert_eq!(catch_panic("a request", async { 7 }).await, Some(7));
    }
}

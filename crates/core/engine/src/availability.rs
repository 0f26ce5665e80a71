//! The stage of the server between its start and its exit, as clients see it: its readiness, and if requests wait for the
//! end of the start.

use std::{
    pin::pin,
    sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering},
};

use galatea_telemetry::{families::REQUESTS_REFUSED, metrics::Figures};
use tokio::sync::Notify;

/// The largest number of requests that wait for the end of the start. More are refused at once.
const MAX_WAITING: usize = 1024;

const SERVING: u8 = 0;
/// Models are being loaded for the first time; front ends already listen.
const STARTING: u8 = 1;
/// Requests are served, but no new clients are wanted.
const LEAVING: u8 = 2;

/// The stage of the server between its start and its exit.
#[derive(Default)]
pub struct Availability {
    stage: AtomicU8,
    waiting: AtomicUsize,
    start_is_over: Notify,
    refused_at_start: AtomicU64,
    refused_at_exit: AtomicU64,
}

impl Availability {
    /// Makes the server live but not ready. Requests wait in [`Availability::started`]. For front ends that listen while models
    /// are loaded for the first time.
    pub fn begin_start(&self) {
        self.stage.store(STARTING, Ordering::SeqCst);
    }

    /// Ends the stage of [`Availability::begin_start`]: waiting requests continue.
    pub fn finish_start(&self) {
        let (starting, serving) = (STARTING, SERVING);
        // A server that is already leaving keeps that stage.
        let _ = self.stage.compare_exchange(starting, serving, Ordering::SeqCst, Ordering::SeqCst);
        self.start_is_over.notify_waiters();
    }

    /// Makes the server not ready, so that no new clients are sent to it. It serves requests as before.
    pub fn begin_leaving(&self) {
        self.stage.store(LEAVING, Ordering::SeqCst);
        self.start_is_over.notify_waiters();
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.stage.load(Ordering::Acquire) == SERVING
    }

    /// Returns true if the server will exit and serves requests until then.
    pub fn is_leaving(&self) -> bool {
        self.stage.load(Ordering::Acquire) == LEAVING
    }

    /// Counts a request that came after the front ends had stopped taking any.
    pub fn count_refused_at_exit(&self) {
        self.refused_at_exit.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_figures(&self, figures: &mut Figures) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        figures.set_labelled(&REQUESTS_REFUSED, "starting", count(&self.refused_at_start));
        figures.set_labelled(&REQUESTS_REFUSED, "exiting", count(&self.refused_at_exit));
    }

    /// Returns true if models are being loaded for the first time.
    pub fn is_starting(&self) -> bool {
        self.stage.load(Ordering::Acquire) == STARTING
    }

    /// Waits for the end of the start. Front ends call this before they answer anything but health checks. Returns false at
    /// once if too many requests already wait; then this one must be refused.
    pub async fn started(&self) -> bool {
        if !self.is_starting() {
            return true;
        }
        let _waiter = Waiter::new(&self.waiting);
        if self.waiting.load(Ordering::SeqCst) > MAX_WAITING {
            self.refused_at_start.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        while self.is_starting() {
            let mut over = pin!(self.start_is_over.notified());
            over.as_mut().enable();
            // Checked again, because the start may have ended before this waiter was registered.
            if self.is_starting() {
                over.await;
            }
        }
        true
    }
}

/// A waiting request, counted until it is dropped, which also happens when its client disconnects.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn poll(waiting: std::pin::Pin<&mut impl Future<Output = bool>>) -> Poll<bool> {
        waiting.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn requests_wait_until_the_start_is_over() {
        let availability = Availability::default();
        assert!(availability.is_serving());
        assert_eq!(poll(pin!(availability.started())), Poll::Ready(true));
        availability.begin_start();
        assert!(!availability.is_serving() && !availability.is_leaving());
        let mut waiting = pin!(availability.started());
        assert_eq!(poll(waiting.as_mut()), Poll::Pending);
        availability.finish_start();
        assert_eq!(poll(waiting), Poll::Ready(true));
        assert!(availability.is_serving());
        availability.begin_leaving();
        availability.finish_start();
        assert!(availability.is_leaving() && !availability.is_serving());
    }

    #[test]
    fn the_number_of_waiting_requests_is_bounded_and_a_leaver_frees_a_place() {
        let availability = Availability::default();
        availability.begin_start();
        let mut waiting: Vec<_> =
            (0..MAX_WAITING).map(|_| Box::pin(availability.started())).collect();
        for request in &mut waiting {
            assert_eq!(poll(request.as_mut()), Poll::Pending);
        }
        assert_eq!(poll(pin!(availability.started())), Poll::Ready(false));
        assert_eq!(availability.refused_at_start.load(Ordering::Relaxed), 1);
        waiting.pop();
        assert_eq!(poll(pin!(availability.started())), Poll::Pending);
    }
}

//! The open calls of one connection, which its task polls itself.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use galatea_frontend::catch_panic_in_poll;

use crate::{
    panic_text::CALL,
    wakeups::{Part, Wakeups},
};

/// The places that keep their memory for the next call. A client with few open calls then costs no allocation.
const KEPT: usize = 4;

/// Futures of one kind, each polled when it was woken.
pub(crate) struct OpenCalls<F> {
    wake_ups: Arc<Wakeups>,
    places: Vec<Option<OpenCall<F>>>,
    /// Places whose call has ended and that have kept their memory ...
    kept: Vec<usize>,
    /// ... and places without memory.
    empty: Vec<usize>,
}

struct OpenCall<F> {
    call: Pin<Box<Option<F>>>,
    part: Arc<Part>,
    /// The waker of `part`.
    waker: Waker,
}

impl<F: Future<Output = ()>> OpenCalls<F> {
    pub fn new(wake_ups: &Arc<Wakeups>) -> Self {
        Self { wake_ups: wake_ups.clone(), places: Vec::new(), kept: Vec::new(), empty: Vec::new() }
    }

    /// Begins a call and polls it for the first time.
    pub fn begin(&mut self, call: F) {
        let index = self.free_place();
        let Some(entry) = self.places.get_mut(index) else { return };
        match entry {
            Some(place) => place.call.set(Some(call)),
            None => {
                let part = Part::new(&self.wake_ups, index);
                let waker = part.clone().into();
                *entry = Some(OpenCall { call: Box::pin(Some(call)), part, waker });
            }
        }
        self.poll(index);
    }

    fn free_place(&mut self) -> usize {
        self.kept.pop().or_else(|| self.empty.pop()).unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
    }

    /// Polls the call at this place, if there is one: a wake-up may arrive after the end of its call.
    pub fn poll(&mut self, index: usize) {
        let Some(Some(place)) = self.places.get_mut(index) else { return };
        place.part.begin_poll();
        let Some(call) = place.call.as_mut().as_pin_mut() else { return };
        let mut cx = Context::from_waker(&place.waker);
        // A panic while answering is reported to the client; this catches one while sending.
        if let Some(Poll::Pending) = catch_panic_in_poll(CALL, || call.poll(&mut cx)) {
            return;
        }
        place.call.set(None);
        if self.kept.len() < KEPT {
            self.kept.push(index);
        } else {
            self.places[index] = None;
            self.empty.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// The calls end with their channel.
    #[test]
    fn woken_calls_end_and_free_their_places() {
        let wake_ups = Arc::<Wakeups>::default();
        let mut calls = OpenCalls::new(&wake_ups);
        let context = Context::from_waker(Waker::noop());
        let (mut ends, mut woken) = (Vec::new(), Vec::new());
        for round in 0..3 {
            for _ in 0..10 {
                let (end, ended) = tokio::sync::oneshot::channel::<()>();
                ends.push(end);
                calls.begin(Box::pin(async { drop(ended.await) }));
            }
            assert_eq!(calls.places.len(), 10, "{round}");
            assert!(!wake_ups.take_or_sleep(&mut woken, &context));
            ends.drain(5..).for_each(drop);
            assert!(wake_ups.take_or_sleep(&mut woken, &context));
            assert_eq!(woken.len(), 5);
            woken.drain(..).for_each(|index| calls.poll(index));
            ends.drain(..).for_each(drop);
            assert!(wake_ups.take_or_sleep(&mut woken, &context));
            woken.drain(..).for_each(|index| calls.poll(index));
            assert_eq!((calls.kept.len(), calls.empty.len()), (KEPT, 10 - KEPT));
        }
        calls.poll(3);
        calls.poll(1000);
    }

    #[test]
    fn a_panic_ends_only_its_call() {
        let wake_ups = Arc::<Wakeups>::default();
        let mut calls = OpenCalls::new(&wake_ups);
        for panics in [true, false] {
            calls.begin(poll_fn(move |_| {
                assert!(!panics, "in a call");
                Poll::Pending
            }));
        }
        assert_eq!((calls.places.len(), calls.kept.len()), (1, 0));
    }
}

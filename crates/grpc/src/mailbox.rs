//! Where the models put the answers to the requests of one stream.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use galatea_types::{Response, ResponseSink};

/// What an answer takes beside its tensors, about; so that empty ones are counted too.
const RESPONSE_OVERHEAD: usize = 256;

/// Which request of the stream: each kind counts its own from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Answered once, in the order of the requests.
    Ordered(u64),
    /// Of a decoupled model: answered any number of times, at any time.
    Decoupled(u64),
}

/// A response that has come.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub key: Key,
    pub response: Response,
}

impl Arrival {
    /// Bytes it holds as long as the client has not taken it. Answers in order are not counted: there are
    /// no more of them than requests, and requests are not read from a client that does not read.
    pub fn weight(&self) -> usize {
        if matches!(self.key, Key::Ordered(_)) {
            return 0;
        }
        let outputs = match &self.response.result {
            Some(Ok(response)) => response.outputs.as_slice(),
            _ => &[],
        };
        RESPONSE_OVERHEAD + outputs.iter().map(|t| t.data.len()).sum::<usize>()
    }
}

/// Filled by any thread, emptied by the stream's task.
#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    is_closed: AtomicBool,
    /// Most bytes of decoupled answers that may wait for the client.
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    arrivals: Vec<Arrival>,
    /// The request whose answer goes next, of those that are answered in order.
    awaited: u64,
    waker: Option<Waker>,
    /// Bytes put in and not yet sent.
    backlog: usize,
    has_overflown: bool,
}

/// What [`Mailbox::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Some,
    /// The waker is called at the next answer that can be sent.
    Nothing,
    /// More has come than the client was willing to read; all of it is thrown away.
    Overflow,
}

impl Mailbox {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), is_closed: AtomicBool::new(false), limit })
    }

    /// Moves all that has come to `into`. `awaited` is the request whose answer goes next in order: the
    /// others' do not wake anybody.
    pub fn take(&self, awaited: u64, waker: &Waker, into: &mut Vec<Arrival>) -> Taken {
        let mut state = self.lock();
        if state.has_overflown {
            return Taken::Overflow;
        }
        state.awaited = awaited;
        if state.arrivals.is_empty() {
            state.waker = Some(waker.clone());
            return Taken::Nothing;
        }
        std::mem::swap(&mut state.arrivals, into);
        Taken::Some
    }

    /// Some bytes of the backlog have gone out.
    pub fn sent(&self, weight: usize) {
        if weight > 0 {
            let mut state = self.lock();
            state.backlog = state.backlog.saturating_sub(weight);
        }
    }

    /// Nobody empties it any more: what comes from now on is thrown away, and models that ask are told.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let left = std::mem::take(&mut self.lock().arrivals);
        drop(left);
    }

    fn put(&self, arrival: Arrival) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let weight = arrival.weight();
        let mut state = self.lock();
        if state.backlog > 0 && state.backlog.saturating_add(weight) > self.limit {
            state.has_overflown = true;
            let waker = state.waker.take();
            drop(state);
            self.close();
            return wake(waker);
        }
        state.backlog += weight;
        let can_go = match arrival.key {
            Key::Ordered(number) => number == state.awaited,
            Key::Decoupled(_) => true,
        };
        state.arrivals.push(arrival);
        let waker = if can_go { state.waker.take() } else { None };
        drop(state);
        wake(waker);
    }

    /// Between any two statements the state is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the lock, which the woken task wants.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The way back of one request.
pub(crate) struct Slip {
    pub mailbox: Arc<Mailbox>,
    pub key: Key,
}

impl ResponseSink for Slip {
    fn respond(&mut self, response: Response) {
        self.mailbox.put(Arrival { key: self.key, response });
    }

    fn is_closed(&self) -> bool {
        self.mailbox.is_closed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::atomic::AtomicUsize, task::Wake};

    use galatea_types::{DataType, InferResponse, Responder, Tensor};

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn responder(mailbox: &Arc<Mailbox>, key: Key) -> Responder {
        Responder::calling(Slip { mailbox: mailbox.clone(), key })
    }

    fn answer(bytes: usize) -> galatea_types::Result<InferResponse> {
        Ok(InferResponse {
            model_name: "m".into(),
            model_version: 1,
            id: String::new(),
            parameters: vec![],
            outputs: vec![Tensor::new("O", DataType::Uint8, [bytes as i64], vec![0; bytes])],
        })
    }

    #[test]
    fn only_what_can_go_wakes_the_stream() {
        let mailbox = Mailbox::new(1000);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let mut taken = Vec::new();
        assert_eq!(mailbox.take(3, &waker, &mut taken), Taken::Nothing);
        responder(&mailbox, Key::Ordered(4)).finish(answer(0));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        responder(&mailbox, Key::Ordered(3)).finish(answer(0));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert_eq!(mailbox.take(3, &waker, &mut taken), Taken::Some);
        let keys: Vec<Key> = taken.drain(..).map(|a| a.key).collect();
        assert_eq!(keys, [Key::Ordered(4), Key::Ordered(3)]);
        assert_eq!(mailbox.take(5, &waker, &mut taken), Taken::Nothing);
        responder(&mailbox, Key::Decoupled(0)).close();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_backlog_over_the_limit_ends_the_stream_and_tells_the_models() {
        let mailbox = Mailbox::new(2000);
        let mut taken = Vec::new();
        let mut big = responder(&mailbox, Key::Decoupled(0));
        assert!(big.send(answer(5000)), "one answer may be of any size");
        assert_eq!(mailbox.take(0, Waker::noop(), &mut taken), Taken::Some);
        mailbox.sent(taken[0].weight());
        assert!(big.send(answer(1000)));
        responder(&mailbox, Key::Ordered(0)).finish(answer(9000));
        assert!(!big.is_closed(), "answers in order are not counted");
        assert!(!big.send(answer(1000)));
        assert_eq!(mailbox.take(0, Waker::noop(), &mut taken), Taken::Overflow);
        assert!(mailbox.lock().arrivals.is_empty());
    }

    #[test]
    fn nothing_stays_in_a_closed_mailbox() {
        let mailbox = Mailbox::new(1000);
        let mut early = responder(&mailbox, Key::Decoupled(0));
        assert!(early.send(answer(1)));
        mailbox.close();
        assert!(early.is_closed() && !early.send(answer(1)));
        assert!(mailbox.lock().arrivals.is_empty());
    }
}

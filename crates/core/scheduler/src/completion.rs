//! Sends responses in the order of arrival if the configuration has `preserve_ordering`.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use galatea_types::{Responder, Response, ResponseSink};

use crate::sync::{LockExt, Mutex, MutexGuard};

/// Holds responses back until all requests that arrived earlier have their last response. The request whose turn it is
/// gets its responses as they come.
#[derive(Default)]
pub(crate) struct CompletionQueue(Mutex<HeldCompletion>);

#[derive(Default)]
struct HeldCompletion {
    /// Arrival number of the request whose turn it is.
    next: u64,
    /// The number of requests that have arrived, if they are counted here.
    arrivals: u64,
    requests: BTreeMap<u64, HeldRequest>,
    /// True while a thread sends; other threads leave their responses to it.
    is_sending: bool,
}

struct HeldRequest {
    /// Absent while a response is being sent through it.
    responder: Option<Responder>,
    responses: VecDeque<Response>,
}

impl CompletionQueue {
    /// Returns a responder that keeps the order. `arrival` numbers the accepted requests from 0 without a gap.
    pub fn admit(self: Arc<Self>, arrival: u64, responder: Responder) -> Responder {
        let request = HeldRequest { responder: Some(responder), responses: VecDeque::new() };
        self.lock().requests.insert(arrival, request);
        Responder::calling(OrderedSink { queue: self, arrival })
    }

    /// Does the same for a request that arrives now, if no queue numbers requests. It must get an answer: responses to later
    /// requests wait for it.
    pub fn admit_next(self: Arc<Self>, responder: Responder) -> Responder {
        let arrival = {
            let mut held = self.lock();
            held.arrivals += 1;
            held.arrivals - 1
        };
        self.admit(arrival, responder)
    }

    /// Skips a request that is answered elsewhere, so that later responses do not wait for it.
    pub fn pass_over(self: Arc<Self>, arrival: u64) {
        self.admit(arrival, Responder::spent()).close();
    }

    fn respond(&self, arrival: u64, response: Response) {
        let mut held = self.lock();
        if let Some(request) = held.requests.get_mut(&arrival) {
            request.responses.push_back(response);
        }
        if std::mem::replace(&mut held.is_sending, true) {
            return;
        }
        drop(held);
        // Sends without the lock, because the receiver of a response may call this queue.
        while let Some((responder, response)) = self.take_next() {
            self.send(responder, response);
        }
    }

    fn take_next(&self) -> Option<(Responder, Response)> {
        let mut held = self.lock();
        let next = held.take_next();
        // Set under the same lock: the next caller either finds nothing left or sends it itself.
        held.is_sending = next.is_some();
        next
    }

    fn send(&self, mut responder: Responder, response: Response) {
        match (response.result, response.is_final) {
            (Some(result), true) => responder.finish(result),
            (None, true) => responder.close(),
            (result, false) => {
                if let Some(result) = result {
                    responder.send(result);
                }
                self.lock().put_back(responder);
            }
        }
    }

    fn is_closed(&self, arrival: u64) -> bool {
        let held = self.lock();
        let responder = held.requests.get(&arrival).and_then(|request| request.responder.as_ref());
        responder.is_some_and(Responder::is_closed)
    }

    fn lock(&self) -> MutexGuard<'_, HeldCompletion> {
        self.0.lock_unpoisoned()
    }
}

impl HeldCompletion {
    fn take_next(&mut self) -> Option<(Responder, Response)> {
        let request = self.requests.get_mut(&self.next)?;
        let response = request.responses.pop_front()?;
        let responder = request.responder.take()?;
        if response.is_final {
            self.requests.remove(&self.next);
            self.next += 1;
        }
        Some((responder, response))
    }

    fn put_back(&mut self, responder: Responder) {
        if let Some(request) = self.requests.get_mut(&self.next) {
            request.responder = Some(responder);
        }
    }
}

/// Receives the responses to one request.
struct OrderedSink {
    queue: Arc<CompletionQueue>,
    arrival: u64,
}

impl ResponseSink for OrderedSink {
    fn respond(&mut self, response: Response) {
        self.queue.respond(self.arrival, response);
    }

    fn is_closed(&self) -> bool {
        self.queue.is_closed(self.arrival)
    }
}

#[cfg(test)]
mod tests {
    use galatea_backend::testing::{ResponseStream, stream};
    use galatea_types::Error;

    use super::*;

    /// Runs a test that has one thread: locks are those of the model checker.
    fn once(test: impl Fn() + Send + Sync + 'static) {
        galatea_test_support::interleavings::check_random(test, 1);
    }

    /// What arrived, each response by its error text and whether it is the last.
    fn arrived(stream: &mut ResponseStream) -> Vec<(String, bool)> {
        let text = |r: Response| {
            let text = r.result.map(|r| r.expect_err("an error").message().to_owned());
            (text.unwrap_or_default(), r.is_final)
        };
        std::iter::from_fn(|| stream.try_recv().ok()).map(text).collect()
    }

    fn text(text: &str) -> galatea_types::Result<galatea_types::InferResponse> {
        Err(Error::internal(text))
    }

    #[test]
    fn the_first_request_streams_while_later_ones_wait() {
        once(|| {
            let queue = Arc::<CompletionQueue>::default();
            let [(mut a, mut a_stream), (mut b, mut b_stream), (c, mut c_stream)] =
                [0, 1, 2].map(|arrival| {
                    let (responder, stream) = stream();
                    (queue.clone().admit(arrival, responder), stream)
                });
            b.send(text("b1"));
            c.finish(text("c"));
            a.send(text("a1"));
            assert_eq!(arrived(&mut a_stream), [("a1".to_owned(), false)]);
            assert!(arrived(&mut b_stream).is_empty() && arrived(&mut c_stream).is_empty());
            a.close();
            assert_eq!(arrived(&mut a_stream), [(String::new(), true)]);
            assert_eq!(arrived(&mut b_stream), [("b1".to_owned(), false)]);
            b.send(text("b2"));
            assert_eq!(arrived(&mut b_stream), [("b2".to_owned(), false)]);
            assert!(arrived(&mut c_stream).is_empty());
            drop(b);
            assert!(arrived(&mut b_stream).last().is_some_and(|(_, is_final)| *is_final));
            assert_eq!(arrived(&mut c_stream), [("c".to_owned(), true)]);
            assert!(queue.lock().requests.is_empty());
        });
    }

    #[test]
    fn a_dropped_receiver_closes_the_responder() {
        once(|| {
            let queue = Arc::<CompletionQueue>::default();
            let (responder, stream) = stream();
            let responder = queue.admit(0, responder);
            assert!(!responder.is_closed());
            drop(stream);
            assert!(responder.is_closed());
        });
    }

    #[test]
    fn a_receiver_may_call_the_queue() {
        once(|| {
            struct Calling(Arc<CompletionQueue>);
            impl ResponseSink for Calling {
                fn respond(&mut self, _: Response) {
                    assert!(!self.0.is_closed(1));
                    // Another thread would find it being sent and leave it: here the same one does.
                    self.0.respond(1, Response { result: None, is_final: true });
                }
            }
            let queue = Arc::<CompletionQueue>::default();
            let first = queue.clone().admit(0, Responder::calling(Calling(queue.clone())));
            let (responder, mut stream) = stream();
            let _second = queue.clone().admit(1, responder);
            first.close();
            assert_eq!(arrived(&mut stream), [(String::new(), true)]);
        });
    }

    #[test]
    fn concurrent_responses_keep_their_order_and_none_is_lost() {
        /// Notes which request got a response, and whether it is the last.
        struct Noting(u64, Arc<std::sync::Mutex<Vec<(u64, bool)>>>);
        impl ResponseSink for Noting {
            fn respond(&mut self, response: Response) {
                self.1.lock().expect("no panic").push((self.0, response.is_final));
                // Others respond while this one is being sent.
                shuttle::thread::yield_now();
            }
        }
        let run = || {
            let queue = Arc::<CompletionQueue>::default();
            let noted = Arc::<std::sync::Mutex<_>>::default();
            let threads: Vec<_> = (0..3)
                .map(|arrival| {
                    let (queue, noted) = (queue.clone(), noted.clone());
                    shuttle::thread::spawn(move || {
                        let sink = Responder::calling(Noting(arrival, noted));
                        let mut responder = queue.admit(arrival, sink);
                        responder.send(text("one"));
                        responder.close();
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            let expected: Vec<_> = (0..3).flat_map(|n| [(n, false), (n, true)]).collect();
            assert_eq!(*noted.lock().expect("no panic"), expected);
            assert!(queue.lock().requests.is_empty());
        };
        galatea_test_support::interleavings::check_random(run, 2000);
        galatea_test_support::interleavings::check_pct(run, 2000, 3);
    }
}

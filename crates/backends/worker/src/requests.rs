//! Requests that a worker executes, and the responders of requests that it answers through a response sender.

use std::{
    collections::HashMap,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use galatea_backend::ResponseSender;
use galatea_types::{
    Cancellation, Cause, CondvarExt as _, Error, LockExt as _, Observers, Parameters,
    RequestContext, Result, Tensor,
};

/// The content of a response.
pub type ResponseContent = Result<(Vec<Tensor>, Parameters)>;

/// A request whose responses may come as events.
pub(crate) struct ActiveRequest {
    cancellation: Cancellation,
    observers: Observers,
    /// Names of the requested outputs.
    pub outputs: Arc<[Arc<str>]>,
    /// Names of the outputs that are states of the request's sequence.
    pub states: Arc<[Arc<str>]>,
    state: Mutex<State>,
}

enum State {
    /// No sender yet: responses that come as events are kept. The flag says that one is final.
    Buffering(Vec<(Option<ResponseContent>, bool)>),
    Streaming(Box<ResponseSender>),
    /// All responses so far have gone through the sender, which may be taken back.
    GivenBack(Box<ResponseSender>),
    Closed,
}

impl ActiveRequest {
    pub fn new(
        context: &RequestContext,
        outputs: Arc<[Arc<str>]>,
        states: Arc<[Arc<str>]>,
    ) -> Self {
        let (cancellation, observers) = (context.cancellation.clone(), context.observers.clone());
        Self {
            cancellation,
            observers,
            outputs,
            states,
            state: Mutex::new(State::Buffering(Vec::new())),
        }
    }

    /// Sends the kept responses through `sender`, and later ones too. Returns true if the final one was among them.
    fn attach(&self, mut sender: ResponseSender) -> bool {
        let mut state = self.state.lock_unpoisoned();
        let State::Buffering(early) = std::mem::replace(&mut *state, State::Closed) else {
            return true;
        };
        for (content, is_final) in early {
            if is_final {
                sender.finish(content);
                return true;
            }
            content.into_iter().for_each(|content| sender.send(content));
        }
        *state = State::Streaming(Box::new(sender));
        false
    }

    fn respond(&self, content: Option<ResponseContent>, is_final: bool) {
        let mut state = self.state.lock_unpoisoned();
        match &mut *state {
            State::Buffering(early) => early.push((content, is_final)),
            State::Closed => {}
            State::Streaming(_) if content.is_none() && !is_final => {
                if let State::Streaming(sender) = std::mem::replace(&mut *state, State::Closed) {
                    *state = State::GivenBack(sender);
                }
            }
            State::Streaming(sender) | State::GivenBack(sender) if !is_final => {
                content.into_iter().for_each(|content| sender.send(content));
            }
            State::Streaming(_) | State::GivenBack(_) => {
                let sender = std::mem::replace(&mut *state, State::Closed);
                if let State::Streaming(sender) | State::GivenBack(sender) = sender {
                    sender.finish(content);
                }
            }
        }
    }

    /// Takes the response of a request that has no sender, once the final one has come.
    fn take_response(&self) -> Option<ResponseContent> {
        let mut state = self.state.lock_unpoisoned();
        let State::Buffering(early) = &mut *state else { return Some(Err(unanswered())) };
        if !early.iter().any(|(_, is_final)| *is_final) {
            return None;
        }
        let first = early.drain(..).find_map(|(content, _)| content);
        *state = State::Closed;
        Some(first.unwrap_or_else(|| Err(unanswered())))
    }

    /// Takes the sender of a request that the worker has given back. `Err`: it has not yet. `None`: the request is over.
    fn take_back(&self) -> Result<Option<ResponseSender>, ()> {
        let mut state = self.state.lock_unpoisoned();
        match std::mem::replace(&mut *state, State::Closed) {
            State::GivenBack(sender) => Ok(Some(*sender)),
            State::Closed => Ok(None),
            other => {
                *state = other;
                Err(())
            }
        }
    }

    fn is_cancelled(&self) -> bool {
        let state = self.state.lock_unpoisoned();
        self.cancellation.is_cancelled()
            || matches!(&*state, State::Streaming(sender) if sender.is_cancelled())
    }

    fn has_sender(&self) -> bool {
        matches!(&*self.state.lock_unpoisoned(), State::Streaming(_) | State::GivenBack(_))
    }
}

fn unanswered() -> Error {
    Error::internal("the model ended the request without a response")
}

/// The requests of one worker, by key.
#[derive(Default)]
pub struct ActiveRequests {
    by_key: Mutex<HashMap<u64, Arc<ActiveRequest>>>,
    /// Notified when a request ended or was removed.
    changed: Condvar,
    /// Count of responses, final or not, and of requests removed.
    progress: AtomicU64,
}

impl ActiveRequests {
    pub(crate) fn add(&self, key: u64, request: ActiveRequest) {
        self.by_key.lock_unpoisoned().insert(key, Arc::new(request));
    }

    pub(crate) fn get(&self, key: u64) -> Option<Arc<ActiveRequest>> {
        self.by_key.lock_unpoisoned().get(&key).cloned()
    }

    /// Makes the observers for a worker's call to `model` on behalf of request `key`. A key of 0 stands for the worker's
    /// only request, if it has one: the model has not passed the trace of a request on.
    pub fn observers_of_call(&self, key: u64, model: &str) -> Observers {
        let by_key = self.by_key.lock_unpoisoned();
        let only = by_key.values().next().filter(|_| key == 0 && by_key.len() == 1);
        let observers = by_key.get(&key).or(only).map(|request| request.observers.clone());
        drop(by_key);
        observers.unwrap_or_default().child(model, Cause::ModelCall { passes_trace: key != 0 })
    }

    /// Removes a request that is answered, or will be by its batch.
    pub(crate) fn remove(&self, key: u64) {
        self.note_progress();
        let mut by_key = self.by_key.lock_unpoisoned();
        by_key.remove(&key);
        self.changed.notify_all();
    }

    /// Makes the request's responses go through `sender` from now on.
    pub(crate) fn attach(&self, key: u64, sender: ResponseSender) {
        // Without an entry the sender is dropped, which answers its client with an error.
        let is_over = self.get(key).is_none_or(|request| request.attach(sender));
        if is_over {
            self.remove(key);
        }
    }

    /// Waits for the response of a request that its batch must answer: a response sent as an event, or the error of the
    /// worker's end.
    pub(crate) fn wait_for_response(&self, key: u64) -> ResponseContent {
        let Some(request) = self.get(key) else { return Err(unanswered()) };
        let mut by_key = self.by_key.lock_unpoisoned();
        loop {
            if let Some(content) = request.take_response() {
                by_key.remove(&key);
                return content;
            }
            by_key = self.changed.wait_unpoisoned(by_key);
        }
    }

    /// Waits until the worker has given back a request that it answered through a response sender. Earlier responses have
    /// left by then. Returns `None` if the request is over.
    pub(crate) fn take_back(&self, key: u64) -> Option<ResponseSender> {
        let request = self.get(key)?;
        let mut by_key = self.by_key.lock_unpoisoned();
        loop {
            if let Ok(sender) = request.take_back() {
                by_key.remove(&key);
                return sender;
            }
            by_key = self.changed.wait_unpoisoned(by_key);
        }
    }

    /// Handles a response that came as an event. With no content and `is_final` false, the worker gives the request back.
    /// A response to a request that is answered already is dropped.
    pub(crate) fn respond(&self, key: u64, content: Option<ResponseContent>, is_final: bool) {
        let Some(request) = self.get(key) else { return };
        self.note_progress();
        let is_given_back = content.is_none() && !is_final;
        request.respond(content, is_final);
        match is_final {
            // Its batch takes the response.
            true if matches!(*request.state.lock_unpoisoned(), State::Buffering(_)) => {
                self.notify()
            }
            true => self.remove(key),
            false if is_given_back => self.notify(),
            false => {}
        }
    }

    pub(crate) fn fail(&self, key: u64, error: &Error) {
        if let Some(request) = self.get(key) {
            request.respond(Some(Err(error.clone())), true);
            self.remove(key);
        }
    }

    pub(crate) fn fail_all(&self, error: &Error) {
        let keys: Vec<u64> = self.by_key.lock_unpoisoned().keys().copied().collect();
        keys.into_iter().for_each(|key| self.fail(key, error));
    }

    /// Returns true if any request is not answered yet.
    pub(crate) fn has_any(&self) -> bool {
        !self.by_key.lock_unpoisoned().is_empty()
    }

    /// Returns true if nobody waits for any open request.
    pub(crate) fn are_abandoned(&self) -> bool {
        let open: Vec<_> = self.by_key.lock_unpoisoned().values().cloned().collect();
        open.iter().all(|request| request.is_cancelled())
    }

    /// Returns a number that changes with every response.
    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    fn note_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the client has cancelled the request. False also for a request that is answered.
    pub fn is_cancelled(&self, key: u64) -> bool {
        self.get(key).is_some_and(|request| request.is_cancelled())
    }

    /// Waits until no response sender is open any more, at most for `limit`.
    pub(crate) fn wait_until_closed(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut by_key = self.by_key.lock_unpoisoned();
        while by_key.values().any(|request| request.has_sender()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            by_key = self.changed.wait_timeout_unpoisoned(by_key, left).0;
        }
    }

    /// Takes the lock, or a waiter could check just before and sleep just after.
    fn notify(&self) {
        let _by_key = self.by_key.lock_unpoisoned();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn requests(keys: &[u64]) -> ActiveRequests {
        let requests = ActiveRequests::default();
        for &key in keys {
            let request = ActiveRequest::new(&RequestContext::new(), Arc::from([]), Arc::from([]));
            requests.add(key, request);
        }
        requests
    }

    fn content(name: &str) -> ResponseContent {
        Ok((vec![Tensor::new(name, galatea_types::DataType::Uint8, [0], vec![])], Vec::new()))
    }

    #[test]
    fn a_batch_waits_for_the_final_event_and_takes_the_response() {
        let requests = requests(&[1]);
        thread::scope(|scope| {
            let response = scope.spawn(|| requests.wait_for_response(1));
            requests.respond(1, Some(content("OUT")), false);
            requests.respond(1, None, true);
            let (outputs, _) = response.join().expect("no panic").expect("a response");
            assert_eq!(&*outputs[0].name, "OUT");
        });
        assert!(requests.get(1).is_none());
    }

    #[test]
    fn the_end_of_the_worker_fails_every_request() {
        let requests = requests(&[1, 2]);
        thread::scope(|scope| {
            let response = scope.spawn(|| requests.wait_for_response(1));
            // A waiter looks at the request under the lock that `fail` takes.
            requests.fail_all(&Error::unavailable("gone"));
            let error = response.join().expect("no panic").expect_err("an error");
            assert!(["gone", unanswered().message()].contains(&error.message()), "{error}");
        });
        assert!(requests.get(1).is_none() && requests.get(2).is_none());
        requests.wait_until_closed(Duration::ZERO);
    }

    #[test]
    fn a_request_without_a_response_is_an_error() {
        let requests = requests(&[1]);
        requests.respond(1, None, true);
        let error = requests.wait_for_response(1).expect_err("an error");
        assert_eq!(error.message(), unanswered().message());
        assert!(!requests.is_cancelled(1), "answered");
    }
}

//! Observers of requests: they learn of the start and the end of a request, and of the requests that it causes.

use std::{fmt, sync::Arc, time::Instant};

use smallvec::SmallVec;

use crate::{InferRequest, Origin, Responder, Response, ResponseSink, Timeline, TraceContext};

/// The start of a request: its model has received or refused it.
#[derive(Clone, Copy, Debug)]
pub struct RequestStart<'a> {
    /// The request with its model, its id and its tensors.
    pub request: &'a InferRequest,
    /// The version of the model that executes it.
    pub version: i64,
    /// The sender: a client and the protocol it speaks, an ensemble, or a model.
    pub origin: &'a Origin,
}

/// The reason why one request causes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An ensemble executes a step.
    Step,
    /// A model calls another one.
    ModelCall {
        /// The model has passed the trace of its own request on.
        passes_trace: bool,
    },
}

/// Observes one request. It travels in the [`RequestContext`](crate::RequestContext), and its methods run on the
/// threads that work on the request: they must be short.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Records the start. A request without a model has none.
    fn start(&self, _: &RequestStart<'_>) {}

    /// Records the end, exactly once: the last response is counted and about to be sent, or the request was refused.
    fn finish(&self, timeline: &Timeline);

    /// Returns whether [`Observer::respond`] does anything. The responses of a request pass its observers only if one wants them.
    fn wants_responses(&self) -> bool {
        false
    }

    /// Records a response, which is about to be sent. The last one comes after the end.
    fn respond(&self, _: &Response) {}

    /// Records that the front end has given the last byte of the answer to its connection. Only requests of clients have an
    /// answer that is sent.
    fn sent(&self, _: Instant) {}

    /// Returns the span under which this observer exports the request, if it does.
    fn trace_context(&self) -> Option<TraceContext> {
        None
    }

    /// Makes the observer of a request to `model` that this one causes. The parent's id is the one from this observer's start.
    /// `None` leaves that request without an observer.
    fn child(self: Arc<Self>, model: &str, cause: Cause) -> Option<Arc<dyn Observer>>;
}

/// The observers of a request. Zero (the usual case) or one need no heap memory for the list.
#[derive(Clone, Debug, Default)]
pub struct Observers(SmallVec<[Arc<dyn Observer>; 1]>);

impl Observers {
    /// Adds an observer.
    pub fn add(&mut self, observer: Arc<dyn Observer>) {
        self.0.push(observer);
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports the start to all.
    pub fn start(&self, start: &RequestStart<'_>) {
        self.0.iter().for_each(|observer| observer.start(start));
    }

    /// Reports the end to all. Only the first call has an effect.
    pub fn finish(&mut self, timeline: &Timeline) {
        if !self.is_empty() {
            self.0.drain(..).for_each(|observer| observer.finish(timeline));
        }
    }

    /// Reports to all that the answer is sent.
    pub fn sent(&self, at: Instant) {
        self.0.iter().for_each(|observer| observer.sent(at));
    }

    /// Returns the span under which the request is exported, if it is.
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.0.iter().find_map(|observer| observer.trace_context())
    }

    /// Makes a responder that shows the responses to the observers that want them, and then gives them to `responder`.
    pub fn watch(&self, responder: Responder) -> Responder {
        if !self.0.iter().any(|observer| observer.wants_responses()) {
            return responder;
        }
        Responder::calling(ResponseWatcher { observers: self.clone(), responder: Some(responder) })
    }

    /// Makes the observers of a request to `model` that this one causes.
    pub fn child(&self, model: &str, cause: Cause) -> Self {
        Self(self.0.iter().filter_map(|observer| observer.clone().child(model, cause)).collect())
    }
}

/// Shows responses to observers on their way.
struct ResponseWatcher {
    observers: Observers,
    /// The caller; `None` after the last response.
    responder: Option<Responder>,
}

impl ResponseSink for ResponseWatcher {
    fn respond(&mut self, response: Response) {
        // A caller that is gone gets no response.
        if !self.is_closed() {
            self.observers.0.iter().for_each(|observer| observer.respond(&response));
        }
        let Response { result, is_final } = response;
        match (result, is_final, &mut self.responder) {
            (Some(result), false, Some(responder)) => drop(responder.send(result)),
            (result, true, responder) => match (result, responder.take()) {
                (Some(result), Some(responder)) => responder.finish(result),
                (None, Some(responder)) => responder.close(),
                (_, None) => {}
            },
            _ => {}
        }
    }

    fn is_closed(&self) -> bool {
        self.responder.as_ref().is_none_or(Responder::is_closed)
    }
}

/// Dropped before the last response only if the request is answered by other means.
impl Drop for ResponseWatcher {
    fn drop(&mut self) {
        if let Some(responder) = self.responder.take() {
            responder.discard();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    };

    use super::*;
    use crate::{Error, LockExt, Protocol};

    /// Notes what it is told, under its name.
    #[derive(Clone, Debug)]
    struct Noted {
        name: String,
        has_children: bool,
        seen: Arc<Mutex<Vec<String>>>,
    }

    impl Noted {
        fn note(&self, what: &str) {
            self.seen.lock_unpoisoned().push(format!("{}: {what}", self.name));
        }
    }

    impl Observer for Noted {
        fn start(&self, start: &RequestStart<'_>) {
            let RequestStart { request, version, origin } = start;
            self.note(&format!("{} {version} {} {origin:?}", request.model_name, request.id));
        }

        fn finish(&self, _: &Timeline) {
            self.note("finish");
        }

        fn sent(&self, _: Instant) {
            self.note("sent");
        }

        fn child(self: Arc<Self>, model: &str, _: Cause) -> Option<Arc<dyn Observer>> {
            let child = Self { name: format!("{} > {model}", self.name), ..(*self).clone() };
            self.has_children.then(|| Arc::new(child) as _)
        }
    }

    #[test]
    fn all_observers_are_called_in_order_and_once_at_the_end() {
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let mut observers = Observers::default();
        assert!(observers.is_empty() && observers.child("none", Cause::Step).is_empty());
        for (name, has_children) in [("a", true), ("b", false), ("c", true)] {
            observers.add(Arc::new(Noted { name: name.into(), has_children, seen: seen.clone() }));
        }
        let front_end = observers.clone();
        let request = InferRequest { id: "7".into(), ..InferRequest::new("m") };
        let origin = Origin::Client(Protocol::Http);
        observers.start(&RequestStart { request: &request, version: 3, origin: &origin });
        let timeline = Timeline::new(Instant::now());
        observers.child("step", Cause::Step).finish(&timeline);
        observers.finish(&timeline);
        observers.finish(&timeline);
        front_end.sent(timeline.received);
        let expected: Vec<_> = [
            ["a", "b", "c"].map(|name| format!("{name}: m 3 7 Client(Http)")).to_vec(),
            ["a", "c"].map(|name| format!("{name} > step: finish")).to_vec(),
            ["a", "b", "c"].map(|name| format!("{name}: finish")).to_vec(),
            ["a", "b", "c"].map(|name| format!("{name}: sent")).to_vec(),
        ]
        .concat();
        assert_eq!(*seen.lock_unpoisoned(), expected);
    }

    /// Counts the responses that it is shown.
    #[derive(Debug, Default)]
    struct Watcher(AtomicUsize);

    impl Observer for Watcher {
        fn finish(&self, _: &Timeline) {}

        fn wants_responses(&self) -> bool {
            true
        }

        fn respond(&self, _: &Response) {
            self.0.fetch_add(1, Relaxed);
        }

        fn child(self: Arc<Self>, _: &str, _: Cause) -> Option<Arc<dyn Observer>> {
            None
        }
    }

    #[test]
    fn responses_pass_the_observers_that_want_them_and_no_others() {
        let watcher = Arc::new(Watcher::default());
        let mut observers = Observers::default();
        observers.add(watcher.clone());
        let shown = || watcher.0.swap(0, Relaxed);
        let (responder, mut answer) = Responder::unary();
        observers.watch(responder).finish(Err(Error::internal("x")));
        assert_eq!((answer.try_recv().map(|a| a.is_err()), shown()), (Ok(true), 1));
        let (responder, mut answer) = Responder::unary();
        drop(observers.watch(responder));
        assert_eq!((answer.try_recv().map(|a| a.is_err()), shown()), (Ok(true), 1));
        let (responder, mut answer) = Responder::unary();
        observers.watch(responder).discard();
        assert!(answer.try_recv().is_err() && shown() == 0, "answered by other means");
        let (responder, answer) = Responder::unary();
        drop(answer);
        let responder = observers.watch(responder);
        assert!(responder.is_closed());
        responder.finish(Err(Error::internal("x")));
        assert_eq!(shown(), 0, "nobody waits for it");
    }

    #[test]
    fn a_stream_of_responses_passes_whole() {
        let watcher = Arc::new(Watcher::default());
        let mut observers = Observers::default();
        observers.add(watcher.clone());
        let seen = Arc::<Mutex<Vec<(bool, bool)>>>::default();
        struct Kept(Arc<Mutex<Vec<(bool, bool)>>>);
        impl ResponseSink for Kept {
            fn respond(&mut self, response: Response) {
                self.0.lock_unpoisoned().push((response.result.is_some(), response.is_final));
            }
        }
        let mut responder = observers.watch(Responder::calling(Kept(seen.clone())));
        assert!(responder.send(Err(Error::internal("one"))));
        responder.close();
        assert_eq!(*seen.lock_unpoisoned(), [(true, false), (false, true)]);
        assert_eq!(watcher.0.load(Relaxed), 2);
    }
}

//! What accompanies a request through the server and is not part of what the client said.

use std::{sync::Arc, time::Instant};

use crate::{
    Cancellation, Cause, ClientShare, Identity, MemoryReservation, Observers, Origin, StepTimes,
    Timeline, TraceContext,
};

/// Who waits for a request, until when, and what has happened to it so far. Travels beside the request, by value:
/// there is one per request.
#[derive(Debug)]
pub struct RequestContext {
    /// Set by the caller when it does not wait for the response any more.
    pub cancellation: Cancellation,
    /// Who sent the request.
    pub origin: Origin,
    /// Who the client has proved to be, where the server asks for it.
    pub identity: Option<Arc<Identity>>,
    /// Told of the start and the end of the request, and of the requests that it causes.
    pub observers: Observers,
    /// The span that the request is in its client's trace, where the client has named one.
    ///
    /// In a box: few clients name one, and the context of every request is handed on many times.
    pub trace_context: Option<Box<TraceContext>>,
    /// When what happened.
    pub timeline: Timeline,
    /// The bytes that the request holds of the server's budget, until it is answered.
    pub memory: MemoryReservation,
    /// What it takes of the limits of its client, until it is answered; `None`: there are none.
    pub share: Option<Box<ClientShare>>,
}

impl RequestContext {
    /// Of a client's request that is at hand now.
    pub fn new() -> Self {
        Self::received_at(Instant::now())
    }

    /// Of a client's request that was at hand at `received`.
    pub fn received_at(received: Instant) -> Self {
        Self {
            cancellation: Cancellation::default(),
            origin: Origin::default(),
            identity: None,
            observers: Observers::default(),
            trace_context: None,
            timeline: Timeline::new(received),
            memory: MemoryReservation::default(),
            share: None,
        }
    }

    /// Of a request that a model sends while it works on others, to be ended by `cancellation`. `observers`: those of
    /// the request that caused it, for a call of a model.
    pub fn from_model(cancellation: Cancellation, observers: Observers) -> Self {
        Self { cancellation, origin: Origin::Model, observers, ..Self::new() }
    }

    /// Of a step that an ensemble sends now to `model` for the request of this context. `times` and `cancellation`
    /// are those of all its steps.
    pub fn derive_step(
        &self,
        now: Instant,
        model: &str,
        times: Arc<StepTimes>,
        cancellation: Cancellation,
    ) -> Self {
        Self {
            cancellation,
            origin: Origin::Step(times),
            identity: self.identity.clone(),
            observers: self.observers.child(model, Cause::Step),
            trace_context: self.trace_context.as_ref().map(|trace| Box::new(trace.child())),
            timeline: Timeline::new(now),
            // The ensemble's request holds the bytes of the client until its last step is done.
            memory: MemoryReservation::default(),
            share: None,
        }
    }

    /// The request has ended at `end`, which is noted unless an end was: its observers get the timeline. Only the first
    /// call reports.
    pub fn finish(&mut self, end: Instant) {
        self.timeline.end.get_or_insert(end);
        self.observers.finish(&self.timeline);
    }
}

impl Default for RequestContext {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Duration};

    use super::*;
    use crate::{LockExt, Observer};

    /// Notes what is finished, and under which name.
    #[derive(Clone, Debug, Default)]
    struct Noted {
        model: String,
        finished: Arc<Mutex<Vec<(String, Timeline)>>>,
    }

    impl Observer for Noted {
        fn finish(&self, timeline: &Timeline) {
            let mut finished = self.finished.lock_unpoisoned();
            finished.push((self.model.clone(), *timeline));
        }

        fn child(self: Arc<Self>, model: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
            let model = format!("{} > {model} ({cause:?})", self.model);
            Some(Arc::new(Self { model, finished: self.finished.clone() }))
        }
    }

    #[test]
    fn an_observer_gets_the_timeline_once_and_its_children_theirs() {
        let noted = Noted { model: "ensemble".into(), ..Noted::default() };
        let mut context = RequestContext::new();
        context.observers.add(Arc::new(noted.clone()));
        let times = Arc::new(StepTimes::new(&context.origin));
        let mut step = context.derive_step(Instant::now(), "step", times, Cancellation::default());
        let (early, late) = (Instant::now(), Instant::now() + Duration::from_millis(1));
        step.finish(early);
        step.finish(late);
        context.finish(late);
        drop((step, context));
        let finished = noted.finished.lock().expect("no panic");
        let seen: Vec<_> = finished.iter().map(|(model, t)| (model.as_str(), t.end)).collect();
        assert_eq!(seen, [("ensemble > step (Step)", Some(early)), ("ensemble", Some(late))]);
    }

    #[test]
    fn a_step_is_a_span_below_its_ensembles() {
        let header = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut context = RequestContext::new();
        let step_of = |context: &RequestContext| {
            let times = Arc::new(StepTimes::new(&context.origin));
            context
                .derive_step(Instant::now(), "step", times, Cancellation::default())
                .trace_context
        };
        assert_eq!(step_of(&context), None);
        context.trace_context = TraceContext::parse(header).map(Box::new);
        let step = step_of(&context).expect("one");
        let own = context.trace_context.expect("good");
        assert_eq!(step.trace_id(), own.trace_id());
        assert_ne!(step.span_id(), own.span_id());
    }

    #[test]
    fn steps_of_a_models_request_come_from_a_model() {
        let origins = |context: &RequestContext| {
            let times = Arc::new(StepTimes::new(&context.origin));
            let step = context.derive_step(Instant::now(), "step", times, Cancellation::default());
            (step.origin.step_times().is_some(), step.origin.is_from_model())
        };
        assert_eq!(origins(&RequestContext::new()), (true, false));
        let call = RequestContext::from_model(Cancellation::default(), Observers::default());
        assert_eq!(origins(&call), (true, true));
    }
}

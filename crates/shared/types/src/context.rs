//! Data that accompanies a request through the server and is no part of the client's message.

use std::{sync::Arc, time::Instant};

use crate::{
    Cancellation, Cause, ClientShare, HeldPlace, Identity, MemoryReservation, Observers, Origin,
    StepTimes, Timeline, TraceContext,
};

/// The caller of a request, its cancellation, and its times so far. It accompanies the request by value: there is one per
/// request.
#[derive(Debug)]
pub struct RequestContext {
    /// The caller sets it when it no longer waits for the response.
    pub cancellation: Cancellation,
    /// The sender of the request.
    pub origin: Origin,
    /// The identity that the client has proved, if the server asks for one.
    pub identity: Option<Arc<Identity>>,
    /// The observers of the start and the end of the request, and of the requests that it causes.
    pub observers: Observers,
    /// The span of the request, if the client has named one of its own or spans are exported.
    ///
    /// Boxed: few requests have one, and the context of every request is moved many times.
    pub trace_context: Option<Box<TraceContext>>,
    /// The instants of the request.
    pub timeline: Timeline,
    /// The bytes of the server's memory budget that the request holds until it is answered.
    pub memory: MemoryReservation,
    /// The share of its client's limits, until it is answered; `None` when there are no limits.
    pub share: Option<Box<ClientShare>>,
    /// The time until which the client waits, if it has said so and requests may be refused for it.
    pub deadline: Option<Instant>,
    /// The place that the request takes of its model's limit; `None` without admission.
    pub place: Option<Box<dyn HeldPlace>>,
}

impl RequestContext {
    /// Makes the context of a client's request that was received now.
    pub fn new() -> Self {
        Self::received_at(Instant::now())
    }

    /// Makes the context of a client's request that was received at `received`.
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
            deadline: None,
            place: None,
        }
    }

    /// Makes the context of a request that a model sends while it works on others; `cancellation` ends it. For a call of a model,
    /// `observers` are those of the request that caused it.
    pub fn from_model(cancellation: Cancellation, observers: Observers) -> Self {
        Self { cancellation, origin: Origin::Model, observers, ..Self::new() }
    }

    /// Makes the context of a step that an ensemble sends now to `model` for this request. All its steps share `times` and
    /// `cancellation`.
    pub fn derive_step(
        &self,
        now: Instant,
        model: &str,
        times: Arc<StepTimes>,
        cancellation: Cancellation,
    ) -> Self {
        let observers = self.observers.child(model, Cause::Step);
        let below = || self.trace_context.as_ref().map(|trace| trace.child());
        Self {
            cancellation,
            origin: Origin::Step(times),
            identity: self.identity.clone(),
            trace_context: observers.trace_context().or_else(below).map(Box::new),
            observers,
            timeline: Timeline::new(now),
            // The ensemble's request holds the bytes of the client until its last step is done.
            memory: MemoryReservation::default(),
            share: None,
            deadline: None,
            place: None,
        }
    }

    /// Declares that the request is not executed, for the measurement of its model's speed.
    pub fn forgo_place(&mut self) {
        if let Some(place) = &mut self.place {
            place.forgo();
        }
    }

    /// Ends the request at `end`, unless an end is recorded already. Its observers receive the timeline. Only the first call
    /// reports.
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
    fn an_observer_gets_its_timeline_once_and_children_get_theirs() {
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
    fn a_step_is_a_span_below_its_ensemble() {
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
    fn calls_made_by_a_model_are_marked_as_such() {
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

//! Runs one request through the graph: submits steps that are ready and sends responses that are complete.

use std::sync::{Arc, Mutex, MutexGuard};

use galatea_telemetry::FailureReason;
use galatea_types::{
    Cancellation, InferResponse, LockExt as _, PreparedRequest, RequestContext, Responder,
    Response, ResponseSink, Result, StepTimes,
};

use super::{
    dispatch,
    dispatch::Submission,
    graph::Step,
    plan::Plan,
    progress::{Progress, ReadyStep, Scope, StepOrigin, StepSubmission},
    shared::Shared,
};

/// A step's inputs from other steps count to the memory budget only above this number of bytes.
const UNCOUNTED: usize = 4 << 10;

/// One request to the ensemble.
pub(super) struct Run {
    shared: Arc<Shared>,
    plan: Arc<Plan>,
    /// The request without its tensors; every step's request is derived from it.
    request: PreparedRequest,
    times: Arc<StepTimes>,
    /// Cancels the steps of this request, and no other request of the client.
    cancellation: Cancellation,
    state: Mutex<State>,
}

struct State {
    progress: Progress,
    /// Absent while a thread sends with it: responses are sent one at a time and in order, outside the lock.
    responder: Option<Responder>,
    /// The context of the request to the ensemble.
    context: RequestContext,
    has_responded: bool,
}

impl Run {
    pub fn start(
        shared: Arc<Shared>,
        mut request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) {
        let inputs = request.take_inputs();
        let run = Arc::new(Self {
            plan: shared.plan_for(&request),
            times: Arc::new(StepTimes::new(&context.origin)),
            cancellation: context.cancellation.child(),
            state: Mutex::new(State {
                progress: Progress::default(),
                responder: Some(responder),
                context,
                has_responded: false,
            }),
            request,
            shared,
        });
        dispatch::run(|| run.change(|progress, scope| progress.start(scope, inputs)));
    }

    /// Processes a response of a step.
    fn step_responded(
        self: &Arc<Self>,
        from: &StepOrigin,
        result: Option<Result<InferResponse>>,
        is_final: bool,
    ) {
        self.change(|progress, scope| {
            if !progress.step_responded(scope, from, result, is_final) {
                self.cancellation.cancel();
            }
        });
    }

    /// Returns true if the client has gone or the request has ended.
    fn is_closed(&self) -> bool {
        // `try_lock`, because this is called while queues are locked and must not wait.
        let is_closed = |state: &State| {
            let has_left = state.responder.as_ref().is_some_and(Responder::is_closed);
            state.progress.has_ended() || has_left
        };
        self.cancellation.is_cancelled()
            || self.state.try_lock().is_ok_and(|state| is_closed(&state))
    }

    /// Updates the progress, then submits and sends the results.
    fn change(self: &Arc<Self>, f: impl FnOnce(&mut Progress, Scope<'_>)) {
        let mut state = self.lock();
        f(&mut state.progress, self.scope());
        let State { progress, context, .. } = &mut *state;
        for ready in progress.ready.drain(..) {
            if let Some(submission) = self.submission(ready, context) {
                dispatch::add(submission);
            }
        }
        let has_outgoing = !progress.outgoing.is_empty();
        drop(state);
        if has_outgoing {
            self.send_all();
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            graph: &self.shared.graph,
            plan: &self.plan,
            request: &self.request,
            version: self.shared.version,
        }
    }

    fn step(&self, number: usize) -> Option<&Step> {
        self.shared.graph.steps.get(number)
    }

    fn submission(
        self: &Arc<Self>,
        ready: ReadyStep,
        context: &RequestContext,
    ) -> Option<Submission> {
        let ReadyStep { inputs, computed_bytes, origin } = ready;
        let step = self.step(origin.step)?;
        let now = self.shared.accounting.clock().now();
        let elapsed = now.saturating_duration_since(context.timeline.received);
        let mut request =
            self.request.derive(step.model_name.clone(), step.version, inputs, elapsed);
        request.outputs.clone_from(self.plan.outputs_of(origin.step)?);
        if let Some(sequence) = &origin.sequence {
            sequence.apply_to(&mut request);
        }
        let (times, cancellation) = (self.times.clone(), self.cancellation.clone());
        let mut step_context = context.derive_step(now, &step.model_name, times, cancellation);
        if computed_bytes > UNCOUNTED {
            step_context.memory = context.memory.beside(computed_bytes);
        }
        let responder = Responder::calling(StepSink { run: self.clone(), origin });
        Some(Submission {
            target: step.target.clone(),
            request,
            context: step_context,
            responder,
            is_admitted: false,
        })
    }

    fn send_all(&self) {
        let mut state = self.lock();
        let Some(mut responder) = state.responder.take() else { return };
        while let Some(outgoing) = state.progress.outgoing.pop_front() {
            let is_response = !matches!(outgoing, StepSubmission::End(None));
            if is_response && !std::mem::replace(&mut state.has_responded, true) {
                self.shared.accounting.responds_first(&state.context);
            }
            drop(state);
            match outgoing {
                StepSubmission::Send(response) => _ = responder.send(Ok(response)),
                StepSubmission::End(last) => return self.send_last(responder, last),
            }
            state = self.lock();
        }
        state.responder = Some(responder);
    }

    fn send_last(&self, responder: Responder, last: Option<Result<InferResponse>>) {
        let mut context = std::mem::take(&mut self.lock().context);
        let (accounting, request) = (&self.shared.accounting, &self.request);
        match &last {
            Some(Err(error)) => {
                accounting.failed(&request.id, &mut context, FailureReason::Other, error);
            }
            _ => accounting.ensemble_succeeded(request.batch_size(), &mut context, &self.times),
        }
        match last {
            Some(result) => responder.finish(result),
            None => responder.close(),
        }
        self.shared.in_flight.leave();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock_unpoisoned()
    }
}

/// Receives the responses to one step's request.
struct StepSink {
    run: Arc<Run>,
    origin: StepOrigin,
}

impl ResponseSink for StepSink {
    fn respond(&mut self, response: Response) {
        let Response { result, is_final } = response;
        dispatch::run(|| {
            self.run.step_responded(&self.origin, result, is_final);
            if is_final {
                self.leave_limiter();
            }
        });
    }

    fn is_closed(&self) -> bool {
        self.run.is_closed()
    }
}

impl StepSink {
    fn leave_limiter(&self) {
        let step = self.run.step(self.origin.step);
        let limiter = step.and_then(|step| step.target.limiter.as_ref());
        if let Some(next) = limiter.and_then(|limiter| limiter.leave()) {
            dispatch::add(Submission { is_admitted: true, ..next });
        }
    }
}

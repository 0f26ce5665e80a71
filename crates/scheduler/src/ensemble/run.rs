use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use galatea_types::{
    Cancellation, Error, InferRequest, InferResponse, PreparedRequest, RequestContext, Responder,
    Result, StepTimes, Tensor,
};

use super::{
    Shared,
    fit::fit,
    graph::{Graph, Step},
    plan::Plan,
    round::{Round, SequenceMark, Value},
    sink::StepSink,
    work::{self, Submission},
};

/// One request on its way through the graph.
pub(super) struct Run {
    shared: Arc<Shared>,
    plan: Arc<Plan>,
    /// The request without its tensors: what every step's request is made after.
    head: PreparedRequest,
    times: Arc<StepTimes>,
    /// Ends the steps of this request, and nothing else the client has under way.
    cancellation: Cancellation,
    state: Mutex<State>,
}

struct State {
    rounds: Vec<Option<Round>>,
    /// Steps under way, parked ones included.
    in_flight: usize,
    /// An answer of which it is not known yet whether it is the last.
    held: Option<InferResponse>,
    is_over: bool,
    outbox: VecDeque<Outgoing>,
    /// Away while somebody sends with it: answers leave one at a time and in order, outside the lock.
    responder: Option<Responder>,
    /// Of the request to the ensemble.
    context: RequestContext,
}

enum Outgoing {
    Send(InferResponse),
    End(Option<Result<InferResponse>>),
}

impl Run {
    pub fn start(
        shared: Arc<Shared>,
        mut request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) {
        let plan = Plan::for_request(&shared.graph, &request);
        let inputs = request.take_inputs();
        let run = Arc::new(Self {
            plan,
            times: Arc::new(StepTimes::new(&context.origin)),
            cancellation: context.cancellation.child(),
            state: Mutex::new(State {
                rounds: Vec::with_capacity(1),
                in_flight: 0,
                held: None,
                is_over: false,
                outbox: VecDeque::new(),
                responder: Some(responder),
                context,
            }),
            head: request,
            shared,
        });
        work::within(|| run.change(|run, state| run.put_inputs(state, inputs)));
    }

    pub fn graph(&self) -> &Graph {
        &self.shared.graph
    }

    /// A step has answered.
    pub fn respond(
        self: &Arc<Self>,
        from: &StepSink,
        result: Option<Result<InferResponse>>,
        is_final: bool,
    ) {
        self.change(|run, state| {
            if is_final {
                state.in_flight -= 1;
            }
            if state.is_over {
                return;
            }
            let absorbed = match result {
                Some(Ok(response)) => run.absorb(state, from, response),
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            if let Err(error) = absorbed {
                run.fail(state, error);
            } else if is_final {
                state.leave_round(from.round);
            }
        });
    }

    /// Whether nobody wants the answer any more.
    pub fn is_closed(&self) -> bool {
        // Never waits: it is asked with queues locked.
        let is_left = |state: &State| {
            state.is_over || state.responder.as_ref().is_some_and(Responder::is_closed)
        };
        self.cancellation.is_cancelled() || self.state.try_lock().is_ok_and(|state| is_left(&state))
    }

    /// One step of the work, after which all that is to be sent is sent.
    fn change(self: &Arc<Self>, f: impl FnOnce(&Arc<Self>, &mut State)) {
        let mut state = self.lock();
        f(self, &mut state);
        self.settle(&mut state);
        let has_mail = !state.outbox.is_empty();
        drop(state);
        if has_mail {
            self.send_all();
        }
    }

    fn put_inputs(self: &Arc<Self>, state: &mut State, inputs: Vec<Tensor>) {
        let graph = self.graph();
        let at = state.open_round(graph, 0);
        let batch_size = if graph.is_batched { self.head.batch_size().max(1) } else { 0 };
        let mut inputs: Vec<Option<Tensor>> = inputs.into_iter().map(Some).collect();
        for input in &graph.inputs {
            let is_it = |t: &&mut Option<Tensor>| t.as_ref().is_some_and(|t| t.name == input.name);
            let value = inputs.iter_mut().find(is_it).and_then(Option::take).map(|t| Value {
                data_type: t.data_type,
                shape: t.shape,
                data: t.data,
                batch_size,
                mark: None,
                is_made: false,
            });
            self.put(state, at, input.slot, value);
        }
        self.answer(state, at);
    }

    /// Takes what a step answered into the graph.
    fn absorb(
        self: &Arc<Self>,
        state: &mut State,
        from: &StepSink,
        response: InferResponse,
    ) -> Result<()> {
        let Some(step) = self.graph().steps.get(from.step) else { return Ok(()) };
        let said = match response.parameters.is_empty() {
            true => None,
            false => {
                let asked = from.mark.as_ref().map(|m| &m.correlation_id);
                let asked = asked.unwrap_or(&self.head.correlation_id);
                SequenceMark::of(&response.parameters, asked)?
            }
        };
        let mark = said.or_else(|| from.mark.clone());
        let at = match step.model.config.is_decoupled() {
            true => state.open_round(self.graph(), step.output_stage),
            false => from.round,
        };
        let mut answered: Vec<Option<Tensor>> = response.outputs.into_iter().map(Some).collect();
        for (position, output) in step.outputs.iter().enumerate() {
            let tensor = take_output(&mut answered, position, &output.asked.name);
            let value = tensor.map(|t| Value {
                data_type: t.data_type,
                shape: t.shape,
                data: t.data,
                batch_size: from.batch_size,
                mark: mark.clone(),
                is_made: true,
            });
            self.put(state, at, output.slot, value);
        }
        self.answer(state, at);
        state.close_if_idle(at);
        Ok(())
    }

    /// Sets a tensor, and starts every step that waited for just this one.
    fn put(self: &Arc<Self>, state: &mut State, at: usize, slot: usize, value: Option<Value>) {
        let graph = self.graph();
        let Some(Some(round)) = state.rounds.get_mut(at) else { return };
        if !round.put(slot, value, self.plan.reads(round.stage, slot)) {
            return;
        }
        let readers = graph.stages.get(round.stage).and_then(|s| s.readers.get(slot));
        for &number in readers.into_iter().flatten() {
            let Some(step) = graph.steps.get(number) else { continue };
            let Some(asked) = self.plan.asked(number) else { continue };
            if step.inputs.iter().all(|input| round.is_set(input.slot)) {
                round.live += 1;
                state.in_flight += 1;
                let context = &state.context;
                let (mut request, sink) = self.step_request(number, step, round, (at, context));
                request.outputs.clone_from(asked);
                work::add(Submission {
                    run: self.clone(),
                    step: number,
                    request,
                    context: self.step_context(step, context),
                    responder: Responder::calling(sink),
                });
            }
        }
    }

    fn step_request(
        self: &Arc<Self>,
        number: usize,
        step: &Step,
        round: &mut Round,
        (at, context): (usize, &RequestContext),
    ) -> (InferRequest, StepSink) {
        let mut mark = None;
        let mut inputs = Vec::with_capacity(step.inputs.len());
        for input in &step.inputs {
            let Some(value) = round.get(input.slot) else { continue };
            if mark.is_none() {
                mark.clone_from(&value.mark);
            }
            inputs.push(Tensor {
                name: input.name.clone(),
                data_type: value.data_type,
                shape: fit(value.shape.clone(), &input.dims, step.is_batched, value.batch_size),
                data: value.data.clone(),
            });
        }
        release_sources(step, round);
        let batch_size = match inputs.first() {
            _ if !step.is_batched => 0,
            Some(first) => first.shape.first().map_or(1, |&n| u32::try_from(n).unwrap_or(0)),
            None => self.head.batch_size(),
        };
        let request = self.request_like_head(step, inputs, mark.as_deref(), context);
        (request, StepSink { run: self.clone(), step: number, round: at, batch_size, mark })
    }

    fn request_like_head(
        &self,
        step: &Step,
        inputs: Vec<Tensor>,
        mark: Option<&SequenceMark>,
        context: &RequestContext,
    ) -> InferRequest {
        let elapsed = context.timeline.received.elapsed();
        let name = step.model.config.name().clone();
        let mut request = self.head.derive(name, step.version, inputs, elapsed);
        if let Some(mark) = mark {
            request.correlation_id = mark.correlation_id.clone();
            request.sequence_start = mark.is_start;
            request.sequence_end = mark.is_end;
        }
        request
    }

    fn step_context(&self, step: &Step, context: &RequestContext) -> RequestContext {
        let (times, cancellation) = (self.times.clone(), self.cancellation.clone());
        context.derive_step(step.model.config.name(), times, cancellation)
    }

    /// Makes the answer out of a round, once it has every output that is wanted.
    fn answer(&self, state: &mut State, at: usize) {
        let graph = self.graph();
        let Some(Some(round)) = state.rounds.get_mut(at) else { return };
        let wanted = || self.plan.outputs.iter().filter_map(|&number| graph.outputs.get(number));
        if round.stage != graph.output_stage
            || round.is_answered
            || !wanted().all(|output| round.is_set(output.slot))
        {
            return;
        }
        round.is_answered = true;
        let mut response = self.response();
        response.outputs.reserve_exact(self.plan.outputs.len());
        for output in wanted() {
            let Some(value) = round.get(output.slot) else { continue };
            if value.is_made {
                let said = value.mark.as_deref().map(SequenceMark::to_parameters);
                response.parameters =
                    said.unwrap_or_else(|| SequenceMark::of_request(&self.head).to_parameters());
            }
            let shape = value.shape.clone();
            response.outputs.push(Tensor {
                name: output.name.clone(),
                data_type: value.data_type,
                shape: fit(shape, &output.dims, graph.is_batched, value.batch_size),
                data: value.data.clone(),
            });
            round.release(output.slot);
        }
        if let Some(earlier) = state.held.replace(response) {
            state.outbox.push_back(Outgoing::Send(earlier));
        }
    }

    fn response(&self) -> InferResponse {
        InferResponse {
            model_name: self.graph().name.clone(),
            model_version: self.shared.version,
            id: self.head.id.clone(),
            parameters: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Ends the request when no step is under way, and lets answers go of which others follow.
    fn settle(&self, state: &mut State) {
        if state.is_over {
            return;
        }
        let graph = self.graph();
        if state.in_flight > 0 {
            if graph.is_decoupled
                && let Some(response) = state.held.take()
            {
                state.outbox.push_back(Outgoing::Send(response));
            }
            return;
        }
        match state.held.take() {
            Some(response) => state.end(Some(Ok(response))),
            None if graph.is_decoupled => state.end(None),
            None => {
                let prefix = self.head.message_prefix();
                let text = "unexpected deadlock, at least one output is not set while no more \
                            ensemble steps can be made";
                self.fail(state, Error::invalid_arg(format!("{prefix}{text}")));
            }
        }
    }

    /// Answers with the first error at once; what is still under way is of no use to anybody.
    fn fail(&self, state: &mut State, error: Error) {
        let name = &self.graph().name;
        state.end(Some(Err(error.prefixed(format_args!("in ensemble '{name}', ")))));
        self.cancellation.cancel();
    }

    fn send_all(&self) {
        let mut state = self.lock();
        let Some(mut responder) = state.responder.take() else { return };
        while let Some(outgoing) = state.outbox.pop_front() {
            drop(state);
            match outgoing {
                Outgoing::Send(response) => _ = responder.send(Ok(response)),
                Outgoing::End(last) => return self.send_last(responder, last),
            }
            state = self.lock();
        }
        state.responder = Some(responder);
    }

    fn send_last(&self, responder: Responder, last: Option<Result<InferResponse>>) {
        let error = last.as_ref().and_then(|result| result.as_ref().err());
        let mut context = std::mem::take(&mut self.lock().context);
        self.shared.count(&self.head, &mut context, &self.times, error);
        match last {
            Some(result) => responder.finish(result),
            None => responder.close(),
        }
        self.shared.leave();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_round(&mut self, graph: &Graph, stage: usize) -> usize {
        let slots = graph.stages.get(stage).map_or(0, |s| s.readers.len());
        let round = Some(Round::new(stage, slots));
        match self.rounds.iter().position(Option::is_none) {
            Some(free) => {
                if let Some(place) = self.rounds.get_mut(free) {
                    *place = round;
                }
                free
            }
            None => {
                self.rounds.push(round);
                self.rounds.len() - 1
            }
        }
    }

    fn leave_round(&mut self, at: usize) {
        if let Some(Some(round)) = self.rounds.get_mut(at) {
            round.live -= 1;
        }
        self.close_if_idle(at);
    }

    /// A round in which nothing is under way gets no further: its tensors can go.
    fn close_if_idle(&mut self, at: usize) {
        if let Some(place) = self.rounds.get_mut(at)
            && place.as_ref().is_some_and(|round| round.live == 0)
        {
            *place = None;
        }
    }

    fn end(&mut self, last: Option<Result<InferResponse>>) {
        self.is_over = true;
        self.rounds = Vec::new();
        self.outbox.push_back(Outgoing::End(last));
    }
}

/// Most models answer in the order of their configuration.
fn take_output(answered: &mut [Option<Tensor>], position: usize, name: &str) -> Option<Tensor> {
    let is_it = |tensor: &Option<Tensor>| tensor.as_ref().is_some_and(|t| &*t.name == name);
    if let Some(place) = answered.get_mut(position)
        && is_it(place)
    {
        return place.take();
    }
    answered.iter_mut().find(|tensor| is_it(tensor))?.take()
}

/// A tensor that feeds several inputs of the step was still one tensor to read.
fn release_sources(step: &Step, round: &mut Round) {
    for (position, input) in step.inputs.iter().enumerate() {
        let earlier = step.inputs.get(..position).unwrap_or_default();
        if earlier.iter().all(|e| e.slot != input.slot) {
            round.release(input.slot);
        }
    }
}

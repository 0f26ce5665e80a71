//! The state of one request in the graph: its tensors so far, the steps that are ready and the responses to send.
//! Nothing is sent here, and no lock is taken.

use std::{collections::VecDeque, sync::Arc};

use galatea_types::{Error, InferResponse, PreparedRequest, Result, Tensor};

use super::{
    graph::{EnsembleTensor, Graph, Step},
    plan::Plan,
    round::{StageRound, Value},
    sequence_info::SequenceInfo,
};

/// The constant context of a request's progress.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub graph: &'a Graph,
    pub plan: &'a Plan,
    /// The request to the ensemble, without its tensors.
    pub request: &'a PreparedRequest,
    pub version: i64,
}

/// The progress of one request.
#[derive(Default)]
pub(super) struct Progress {
    rounds: Vec<Option<StageRound>>,
    /// The number of steps in flight, including those that wait for a limiter.
    in_flight: usize,
    /// A response held back until it is known whether it is the last one.
    held: Option<InferResponse>,
    has_ended: bool,
    /// Steps to submit to their models.
    pub ready: Vec<ReadyStep>,
    /// Responses to send, in order.
    pub outgoing: VecDeque<StepSubmission>,
}

/// A step whose inputs are complete.
pub(super) struct ReadyStep {
    pub inputs: Vec<Tensor>,
    /// The bytes of the inputs that other steps computed.
    pub computed_bytes: usize,
    pub origin: StepOrigin,
}

/// The step and round that a response belongs to.
#[derive(Clone)]
pub(super) struct StepOrigin {
    /// Number of the step.
    pub step: usize,
    /// The round that the inputs came from.
    pub round: usize,
    /// The batch size; 0 if its model does not batch.
    pub batch_size: u32,
    /// The sequence of the request, if it is not that of the ensemble request.
    pub sequence: Option<Arc<SequenceInfo>>,
}

pub(super) enum StepSubmission {
    Send(InferResponse),
    End(Option<Result<InferResponse>>),
}

impl Scope<'_> {
    fn wanted_outputs(&self) -> impl Iterator<Item = &EnsembleTensor> {
        self.plan.outputs.iter().filter_map(|&number| self.graph.outputs.get(number))
    }

    fn response(&self) -> InferResponse {
        InferResponse {
            model_name: self.graph.name.clone(),
            model_version: self.version,
            id: self.request.id.clone(),
            parameters: Vec::new(),
            outputs: Vec::with_capacity(self.plan.outputs.len()),
        }
    }
}

impl Progress {
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Sets the tensors of the request.
    pub fn start(&mut self, scope: Scope<'_>, inputs: Vec<Tensor>) {
        let graph = scope.graph;
        let at = self.open_round(graph, 0);
        let batch_size = if graph.is_batched { scope.request.batch_size().max(1) } else { 0 };
        let mut inputs: Vec<Option<Tensor>> = inputs.into_iter().map(Some).collect();
        for input in &graph.inputs {
            let is_it = |t: &&mut Option<Tensor>| t.as_ref().is_some_and(|t| t.name == input.name);
            let value = inputs.iter_mut().find(is_it).and_then(Option::take).map(|t| Value {
                data_type: t.data_type,
                shape: match &input.reshape {
                    Some(reshape) => reshape.to_steps(&t.shape),
                    None => t.shape,
                },
                data: t.data,
                batch_size,
                sequence: None,
                is_computed: false,
            });
            self.set(scope, at, input.slot, value);
        }
        self.respond_from(scope, at);
        self.end_if_idle(scope);
    }

    /// Processes a response of a step. Returns false if the request ends here because of an error.
    pub fn step_responded(
        &mut self,
        scope: Scope<'_>,
        from: &StepOrigin,
        result: Option<Result<InferResponse>>,
        is_final: bool,
    ) -> bool {
        if is_final {
            self.in_flight -= 1;
        }
        if self.has_ended {
            return true;
        }
        let taken = match result {
            Some(Ok(response)) => self.take_response(scope, from, response),
            Some(Err(error)) => Err(error),
            None => Ok(()),
        };
        if let Err(error) = taken {
            self.fail(scope, error);
        } else {
            if is_final {
                self.leave_round(from.round);
            }
            self.end_if_idle(scope);
        }
        !self.has_failed()
    }

    /// Returns true if the last response is an error.
    fn has_failed(&self) -> bool {
        matches!(self.outgoing.back(), Some(StepSubmission::End(Some(Err(_)))))
    }

    /// Sets the tensors of a step's response.
    fn take_response(
        &mut self,
        scope: Scope<'_>,
        from: &StepOrigin,
        response: InferResponse,
    ) -> Result<()> {
        let Some(step) = scope.graph.steps.get(from.step) else { return Ok(()) };
        let reported = match response.parameters.is_empty() {
            true => None,
            false => {
                let requested = from.sequence.as_ref().map(|s| &s.correlation_id);
                let requested = requested.unwrap_or(&scope.request.correlation_id);
                SequenceInfo::from_response(&response.parameters, requested)?
            }
        };
        let sequence = reported.or_else(|| from.sequence.clone());
        let at = match step.is_decoupled {
            true => self.open_round(scope.graph, step.output_stage),
            false => from.round,
        };
        let mut tensors: Vec<Option<Tensor>> = response.outputs.into_iter().map(Some).collect();
        for (position, output) in step.outputs.iter().enumerate() {
            let tensor = take_output(&mut tensors, position, &output.requested);
            let value = tensor.map(|t| Value {
                data_type: t.data_type,
                shape: t.shape,
                data: t.data,
                batch_size: from.batch_size,
                sequence: sequence.clone(),
                is_computed: true,
            });
            self.set(scope, at, output.slot, value);
        }
        self.respond_from(scope, at);
        self.close_if_idle(at);
        Ok(())
    }

    /// Sets a tensor. Every step that lacked only this one becomes ready.
    fn set(&mut self, scope: Scope<'_>, at: usize, slot: usize, value: Option<Value>) {
        let Scope { graph, plan, .. } = scope;
        let Some(Some(round)) = self.rounds.get_mut(at) else { return };
        if !round.set(slot, value, plan.reads(round.stage, slot)) {
            return;
        }
        let readers = graph.readers.get(round.stage).and_then(|slots| slots.get(slot));
        for &number in readers.into_iter().flatten() {
            let Some(step) = graph.steps.get(number).filter(|_| plan.runs(number)) else {
                continue;
            };
            if step.inputs.iter().all(|input| round.is_set(input.slot)) {
                round.in_flight += 1;
                self.in_flight += 1;
                self.ready.push(round.ready_step(scope, step, number, at));
            }
        }
    }

    /// Builds a response from a round that has every wanted output.
    fn respond_from(&mut self, scope: Scope<'_>, at: usize) {
        let graph = scope.graph;
        let Some(Some(round)) = self.rounds.get_mut(at) else { return };
        if round.stage != graph.output_stage
            || round.is_answered
            || !scope.wanted_outputs().all(|output| round.is_set(output.slot))
        {
            return;
        }
        round.is_answered = true;
        let mut response = scope.response();
        for output in scope.wanted_outputs() {
            let Some(value) = round.get(output.slot) else { continue };
            if value.is_computed {
                let parameters = value.sequence.as_deref().map(SequenceInfo::to_parameters);
                response.parameters = parameters
                    .unwrap_or_else(|| SequenceInfo::of_request(scope.request).to_parameters());
            }
            let mut tensor = value.to_tensor(&output.name, &output.dims, graph.is_batched);
            if let Some(reshape) = &output.reshape {
                tensor.shape = reshape.to_client(&tensor.shape);
            }
            response.outputs.push(tensor);
            round.release(output.slot);
        }
        if let Some(earlier) = self.held.replace(response) {
            self.outgoing.push_back(StepSubmission::Send(earlier));
        }
    }

    /// Ends the request when no step is in flight; else sends a response that others may follow.
    fn end_if_idle(&mut self, scope: Scope<'_>) {
        let is_decoupled = scope.graph.is_decoupled;
        if self.in_flight > 0 {
            if is_decoupled && let Some(response) = self.held.take() {
                self.outgoing.push_back(StepSubmission::Send(response));
            }
            return;
        }
        match self.held.take() {
            Some(response) => self.end(Some(Ok(response))),
            None if is_decoupled => self.end(None),
            None => {
                let prefix = scope.request.message_prefix();
                let text = format!(
                    "{prefix}unexpected deadlock, at least one output is not set while no more ensemble steps can be \
                     made"
                );
                self.fail(scope, Error::invalid_arg(text));
            }
        }
    }

    /// Ends the request with its first error at once; the results of steps in flight are not needed.
    fn fail(&mut self, scope: Scope<'_>, error: Error) {
        let name = &scope.graph.name;
        self.end(Some(Err(error.prefixed(format_args!("in ensemble '{name}', ")))));
    }

    fn end(&mut self, last: Option<Result<InferResponse>>) {
        self.has_ended = true;
        self.rounds = Vec::new();
        self.outgoing.push_back(StepSubmission::End(last));
    }

    fn open_round(&mut self, graph: &Graph, stage: usize) -> usize {
        let slots = graph.readers.get(stage).map_or(0, Vec::len);
        let round = Some(StageRound::new(stage, slots));
        match self.rounds.iter_mut().enumerate().find(|(_, round)| round.is_none()) {
            Some((at, free)) => {
                *free = round;
                at
            }
            None => {
                self.rounds.push(round);
                self.rounds.len() - 1
            }
        }
    }

    fn leave_round(&mut self, at: usize) {
        if let Some(Some(round)) = self.rounds.get_mut(at) {
            round.in_flight -= 1;
        }
        self.close_if_idle(at);
    }

    /// Drops the tensors of a round without a step in flight: nothing more can happen in it.
    fn close_if_idle(&mut self, at: usize) {
        if let Some(round) = self.rounds.get_mut(at) {
            round.take_if(|round| round.in_flight == 0);
        }
    }
}

impl StageRound {
    /// Returns a step whose inputs are set. `number` is that of the step, `at` that of this round.
    fn ready_step(&mut self, scope: Scope<'_>, step: &Step, number: usize, at: usize) -> ReadyStep {
        let mut sequence = None;
        let mut inputs = Vec::with_capacity(step.inputs.len());
        let mut computed_bytes = 0;
        for input in &step.inputs {
            let Some(value) = self.get(input.slot) else { continue };
            if sequence.is_none() {
                sequence.clone_from(&value.sequence);
            }
            if value.is_computed {
                computed_bytes += value.data.len();
            }
            inputs.push(value.to_tensor(&input.name, &input.dims, step.is_batched));
        }
        self.release_inputs(step);
        let batch_size = match inputs.first() {
            _ if !step.is_batched => 0,
            Some(first) => first.shape.first().map_or(1, |&n| u32::try_from(n).unwrap_or(0)),
            None => scope.request.batch_size(),
        };
        let origin = StepOrigin { step: number, round: at, batch_size, sequence };
        ReadyStep { inputs, computed_bytes, origin }
    }
}

/// Takes an output by its position, because most models answer in the order of their configuration, else by its name.
fn take_output(tensors: &mut [Option<Tensor>], position: usize, name: &str) -> Option<Tensor> {
    let is_it = |tensor: &Option<Tensor>| tensor.as_ref().is_some_and(|t| &*t.name == name);
    if let Some(tensor) = tensors.get_mut(position)
        && is_it(tensor)
    {
        return tensor.take();
    }
    tensors.iter_mut().find(|tensor| is_it(tensor))?.take()
}

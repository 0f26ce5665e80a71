//! Executes steps of sequences: adds the model's sequence inputs and passes states to the next step.

use galatea_backend::{Batch, PendingRequest, SequenceStates};

use super::executor::Executor;
use crate::{
    queued_request::QueuedRequest,
    request_queue::FinishedWork,
    sequence::{SequenceInputs, SequenceRequest, SlotTicket, Step, StepEnd},
};

/// A row of a batch; `None` is a row without a request.
type Row = Option<Step<QueuedRequest, SequenceStates>>;

type End = StepEnd<QueuedRequest, SequenceStates>;

/// The sequence that a row of a batch belongs to.
struct Origin {
    ticket: SlotTicket,
    /// Its place in the order of arrival.
    arrival: u64,
    /// True if the next request of its sequence needs the states that this one leaves.
    leaves_states: bool,
}

impl Executor {
    /// Executes steps of sequences and answers them, except for requests that are answered later or executed again.
    pub(super) fn execute_steps(&mut self, rows: Vec<Row>) -> FinishedWork<QueuedRequest> {
        let context = self.context.clone();
        let Some(inputs) = &context.sequences else { return FinishedWork::from(0) };
        let origin = |Step { ticket, request, .. }: &Step<QueuedRequest, SequenceStates>| Origin {
            ticket: *ticket,
            arrival: request.arrival,
            leaves_states: inputs.has_states() && !request.is_end(),
        };
        let origins: Vec<_> = rows.iter().map(|row| row.as_ref().map(origin)).collect();
        let waiting = |origin: &Option<Origin>| {
            origin.as_ref().filter(|origin| origin.leaves_states).map(|origin| origin.ticket)
        };
        let waiting = match inputs.has_states() && context.may_answer_later {
            true => origins.iter().map(waiting).collect(),
            false => Vec::new(),
        };
        let batch = self.new_batch(self.complete(inputs, rows));
        let (mut batch, streams) = self.run(batch, waiting);
        let count = origins.iter().flatten().count();
        let steps = self.ends(inputs, &mut batch, &origins);
        FinishedWork { requests: count - self.answer(batch, streams), steps }
    }

    /// Makes the batch: one request for each row.
    fn complete(&self, inputs: &SequenceInputs, rows: Vec<Row>) -> Vec<PendingRequest> {
        let complete = |step: Step<QueuedRequest, SequenceStates>| {
            let mut pending = self.slot.responses.take(step.request);
            inputs.complete(&mut pending, step.states, step.is_first);
            pending
        };
        let rows: Vec<_> = rows.into_iter().map(|row| row.map(complete)).collect();
        if rows.iter().all(Option::is_some) {
            return rows.into_iter().flatten().collect();
        }
        let Some(filler) = rows.iter().flatten().next().map(|row| inputs.filler(row)) else {
            return Vec::new();
        };
        rows.into_iter()
            .map(|row| row.unwrap_or_else(|| filler.pending(self.context.clock.now())))
            .collect()
    }

    /// Returns the end of each step. Called before the steps are answered, because a client may send its next request at once.
    /// Steps that were taken out of the batch with their states report their own end.
    fn ends(
        &self,
        inputs: &SequenceInputs,
        batch: &mut Batch,
        origins: &[Option<Origin>],
    ) -> Vec<End> {
        let mut again = match inputs.is_iterative() {
            true => batch.take_executed_again(),
            false => Vec::new(),
        };
        let end = |(row, origin): (usize, &Option<Origin>)| {
            let Origin { ticket, arrival, leaves_states } = *origin.as_ref()?;
            let position = again.iter().position(|(number, _)| *number == row);
            let (states, again) = match position.map(|position| again.swap_remove(position)) {
                None if leaves_states && batch.request(row).is_none() => return None,
                None => (batch.take_states(row), None),
                Some((_, mut pending)) => {
                    inputs.strip(&mut pending);
                    let states = std::mem::take(&mut pending.states);
                    let mut request = QueuedRequest { pending, arrival };
                    request.continue_sequence(self.context.clock.now());
                    self.slot.responses.accounting.statistics.pending_up();
                    (states, Some(request))
                }
            };
            Some(StepEnd { ticket, states, again })
        };
        origins.iter().enumerate().filter_map(end).collect()
    }
}

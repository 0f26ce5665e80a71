//! Requests executed together, and their outcomes.

use std::{sync::Arc, time::Instant};

use galatea_types::{
    Clock, Error, InferResponse, Parameters, PreparedRequest, Result, Tensor, Timeline,
};

use crate::{
    PendingRequest, RequestObserver, SequenceStates, TakenRequest,
    response_sender::{Execution, Row},
};

/// The outcome of one request of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// The backend has not answered it.
    Unanswered,
    /// Its single response.
    Answered(Result<InferResponse>),
    /// It must be executed again, as the next step of its sequence.
    ExecutedAgain,
}

/// Requests executed together, with their responses.
///
/// Responses are kept here until `execute` returns. Then the statistics are counted, and only then all are sent.
pub struct Batch {
    /// The data that its requests share.
    execution: Execution,
    /// `None` for a request that was taken.
    entries: Vec<Option<Entry>>,
    taken: BatchExit,
    items_again: u64,
    number: usize,
    /// The instants that all its requests share.
    times: Timeline,
}

struct Entry {
    pending: PendingRequest,
    outcome: Outcome,
}

/// The requests that were taken out of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchExit {
    /// The number of requests.
    pub requests: usize,
    /// The sum of their batch sizes.
    pub items: u64,
    /// True if the execution failed as a whole, so that they do not count as inferences.
    pub has_failed: bool,
}

impl Batch {
    /// Creates a batch whose execution begins now, by the system's clock.
    pub fn new(
        model_name: Arc<str>,
        model_version: i64,
        requests: impl IntoIterator<Item = PendingRequest, IntoIter: ExactSizeIterator>,
    ) -> Self {
        Self::by_clock(&Clock::system(), model_name, model_version, requests)
    }

    /// Creates a batch whose execution begins now; all its instants are read from this clock.
    pub fn by_clock(
        clock: &Clock,
        model_name: Arc<str>,
        model_version: i64,
        requests: impl IntoIterator<Item = PendingRequest, IntoIter: ExactSizeIterator>,
    ) -> Self {
        let now = clock.now();
        let entry = |pending| Some(Entry { pending, outcome: Outcome::Unanswered });
        let requests = requests.into_iter();
        // Not collected: that may happen in place and shrink the allocation, which costs more than new memory.
        let mut entries = Vec::with_capacity(requests.len());
        entries.extend(requests.map(entry));
        Self {
            execution: Execution {
                model_name,
                model_version,
                observer: None,
                clock: clock.clone(),
            },
            entries,
            taken: BatchExit::default(),
            items_again: 0,
            number: 0,
            times: Timeline { compute_start: Some(now), ..Timeline::new(now) },
        }
    }

    /// Sets the observer that is notified of the ends of taken requests.
    pub fn observe(&mut self, observer: Arc<dyn RequestObserver>) {
        self.execution.observer = Some(observer);
    }

    /// Sets the number by which the sender of the batch identifies it later.
    pub fn numbered(mut self, number: usize) -> Self {
        self.number = number;
        self
    }

    /// Returns the number set by [`Batch::numbered`], else 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the number of requests, including taken ones. They are indexed from 0.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if it was created without requests.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the requests that were not taken.
    pub fn requests(&self) -> impl Iterator<Item = &PreparedRequest> {
        self.entries.iter().flatten().map(|entry| &entry.pending.request)
    }

    /// Returns the requests that were not taken, with their context, responder and states.
    pub fn pending(&self) -> impl Iterator<Item = &PendingRequest> {
        self.entries.iter().flatten().map(|entry| &entry.pending)
    }

    /// Returns the request at `index`; `None` if it was taken.
    pub fn request(&self, index: usize) -> Option<&PreparedRequest> {
        Some(&self.entry(index)?.pending.request)
    }

    /// Returns the request at `index` with its context, responder and states; `None` if it was taken.
    pub fn pending_at(&self, index: usize) -> Option<&PendingRequest> {
        Some(&self.entry(index)?.pending)
    }

    /// Returns the request at `index` for a change of its sequence's states; `None` if it was taken.
    pub fn pending_at_mut(&mut self, index: usize) -> Option<&mut PendingRequest> {
        Some(&mut self.entries.get_mut(index)?.as_mut()?.pending)
    }

    /// Takes the states that the execution left for the sequence of the request at `index`. A taken request has
    /// taken its states along: its observer gets them when it ends.
    pub fn take_states(&mut self, index: usize) -> SequenceStates {
        let entry = self.entries.get_mut(index).and_then(Option::as_mut);
        entry.map(|entry| std::mem::take(&mut entry.pending.states)).unwrap_or_default()
    }

    /// Marks the end of gathering inputs and the start of the computation, for all requests.
    pub fn mark_input_done(&mut self) {
        self.times.input_done = Some(self.execution.clock.now());
    }

    /// Marks the end of the computation and the start of returning outputs, for all requests.
    pub fn mark_output_started(&mut self) {
        self.times.output_start = Some(self.execution.clock.now());
    }

    /// Sets the instants of the whole execution that a model has reported, in place of marks.
    pub fn set_compute_times(&mut self, input_done: Instant, output_start: Instant) {
        self.times.input_done = Some(input_done);
        self.times.output_start = Some(output_start);
    }

    /// Sets the response of one request. The last call counts.
    pub fn respond(&mut self, index: usize, result: Result<Vec<Tensor>>) {
        self.respond_with(index, result.map(|outputs| (outputs, Vec::new())));
    }

    /// Does [`Batch::respond`] with response parameters. Outputs that are states of a sequence are kept for its next execution.
    /// Clients get those of them that are also outputs for clients.
    pub fn respond_with(&mut self, index: usize, result: Result<(Vec<Tensor>, Parameters)>) {
        let is_of_batch = self.entries.len() > 1;
        let Some(Some(Entry { pending, outcome })) = self.entries.get_mut(index) else { return };
        let PendingRequest { request, states, .. } = pending;
        let result = states.keep(result, request, is_of_batch);
        *outcome = Outcome::Answered(result.map(|(outputs, parameters)| InferResponse {
            model_name: self.execution.model_name.clone(),
            model_version: self.execution.model_version,
            id: request.id.clone(),
            parameters,
            outputs,
        }));
    }

    /// Marks the request at `index` to be executed again in the next batch, because its sequence continues. It has no response
    /// yet, or those that were sent since it was taken.
    pub fn execute_again(&mut self, index: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(index) {
            entry.outcome = Outcome::ExecutedAgain;
        }
    }

    /// Puts a taken request back in its place, with its responder, and does [`Batch::execute_again`].
    pub fn put_back(&mut self, index: usize, taken: TakenRequest) {
        let Some(entry @ None) = self.entries.get_mut(index) else { return };
        let items = u64::from(taken.request.batch_size().max(1));
        let Some(pending) = taken.responder.into_pending(taken.request) else { return };
        self.taken.requests -= 1;
        self.taken.items -= items;
        *entry = Some(Entry { pending, outcome: Outcome::ExecutedAgain });
    }

    /// Returns the number of items of the requests that [`Batch::take_executed_again`] has taken out.
    pub fn items_executed_again(&self) -> u64 {
        self.items_again
    }

    /// Takes out the requests that must be executed again, each with its index.
    pub fn take_executed_again(&mut self) -> Vec<(usize, PendingRequest)> {
        let is_due = |entry: &Option<Entry>| {
            entry.as_ref().is_some_and(|entry| matches!(entry.outcome, Outcome::ExecutedAgain))
        };
        let due = self.entries.iter_mut().enumerate().filter(|(_, entry)| is_due(entry));
        let again: Vec<_> =
            due.filter_map(|(index, entry)| Some((index, entry.take()?.pending))).collect();
        let items = again.iter().map(|(_, p)| u64::from(p.request.batch_size().max(1)));
        self.items_again += items.sum::<u64>();
        again
    }

    /// Answers every request that has no response with this error.
    pub fn fail_all(&mut self, error: &Error) {
        for entry in self.entries.iter_mut().flatten() {
            if matches!(entry.outcome, Outcome::Unanswered) {
                entry.outcome = Outcome::Answered(Err(error.clone()));
            }
        }
    }

    /// Takes one request out of the batch, to answer it on its own. [`ModelInstance::execute`](crate::ModelInstance::execute)
    /// says which models may do this. Returns `None` if it was taken before.
    pub fn take(&mut self, index: usize) -> Option<TakenRequest> {
        let entry = self.entries.get_mut(index)?.take()?;
        let PendingRequest { request, is_filler, .. } = &entry.pending;
        if !is_filler {
            self.taken.requests += 1;
            self.taken.items += u64::from(request.batch_size().max(1));
        }
        let row = Row { number: index, is_alone: self.entries.len() == 1 };
        Some(TakenRequest::new(entry.pending, row, &self.execution, &self.times))
    }

    /// Marks the execution as failed. Taken requests get the error from the code that answers them.
    pub fn fail_taken(&mut self) {
        self.taken.has_failed = true;
    }

    /// Returns the requests taken so far.
    pub fn taken(&self) -> BatchExit {
        self.taken
    }

    /// Returns the instants that all its requests share. The time of receipt is the start of the execution.
    pub fn execution(&self) -> &Timeline {
        &self.times
    }

    /// Ends the execution at `end`. The timeline of each request that was not taken is complete from then on.
    pub fn end_at(&mut self, end: Instant) {
        self.times.end = Some(end);
        for entry in self.entries.iter_mut().flatten() {
            entry.pending.context.timeline.complete_from(&self.times);
        }
    }

    /// Takes the batch apart into the requests that were not taken, each with its outcome.
    pub fn into_outcomes(self) -> impl Iterator<Item = (PendingRequest, Outcome)> {
        self.entries.into_iter().flatten().map(|entry| (entry.pending, entry.outcome))
    }

    /// Returns the outcomes so far of the requests that were not taken.
    pub fn outcomes(&self) -> impl Iterator<Item = (&PendingRequest, &Outcome)> {
        self.entries.iter().flatten().map(|entry| (&entry.pending, &entry.outcome))
    }

    /// Returns the requests that were not taken, for changes by the creator of the batch.
    pub fn pending_mut(&mut self) -> impl Iterator<Item = &mut PendingRequest> {
        self.entries.iter_mut().flatten().map(|entry| &mut entry.pending)
    }

    fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests;

use std::{sync::Arc, time::Instant};

use galatea_types::{Error, InferRequest, InferResponse, Parameters, Responder, Result, Tensor};

use crate::{ResponseSender, StreamEnd, StreamObserver};

/// A request on its way through the scheduler, with the way back.
pub struct Job {
    pub request: InferRequest,
    pub responder: Responder,
    /// When it entered the scheduler's queue.
    pub queued_at: Instant,
}

/// What became of one request of a batch.
#[derive(Debug)]
pub enum Outcome {
    /// The backend said nothing about it.
    Unanswered,
    Answered(Result<InferResponse>),
    /// Its answers go their own way, through a [`ResponseSender`].
    Detached,
    /// Nothing was done about it: another instance may execute it.
    NotBegun,
}

/// Requests executed together, and the place for their answers.
///
/// Answers are kept here until `execute` returns: the statistics are counted first, then all are sent.
pub struct Batch {
    model_name: Arc<str>,
    model_version: i64,
    jobs: Vec<Job>,
    outcomes: Vec<Outcome>,
    observer: Option<Arc<dyn StreamObserver>>,
    number: usize,
    started_at: Instant,
    input_done_at: Option<Instant>,
    output_started_at: Option<Instant>,
}

impl Batch {
    pub fn new(model_name: Arc<str>, model_version: i64, jobs: Vec<Job>) -> Self {
        let outcomes = jobs.iter().map(|_| Outcome::Unanswered).collect();
        Self {
            model_name,
            model_version,
            jobs,
            outcomes,
            observer: None,
            number: 0,
            started_at: Instant::now(),
            input_done_at: None,
            output_started_at: None,
        }
    }

    /// The same batch, with somebody to be told about its detached requests.
    pub fn observed_by(mut self, observer: Arc<dyn StreamObserver>) -> Self {
        self.observe(observer);
        self
    }

    /// [`Batch::observed_by`] in place.
    pub fn observe(&mut self, observer: Arc<dyn StreamObserver>) {
        self.observer = Some(observer);
    }

    /// The same batch with a number, by which whoever gave it away knows it again.
    pub fn numbered(mut self, number: usize) -> Self {
        self.number = number;
        self
    }

    pub fn number(&self) -> usize {
        self.number
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Sum of the requests' batch sizes.
    pub fn item_count(&self) -> u64 {
        self.jobs.iter().map(|j| u64::from(j.request.batch_size)).sum()
    }

    pub fn requests(&self) -> impl ExactSizeIterator<Item = &InferRequest> {
        self.jobs.iter().map(|j| &j.request)
    }

    pub fn request(&self, index: usize) -> Option<&InferRequest> {
        self.jobs.get(index).map(|j| &j.request)
    }

    /// Marks the end of gathering inputs and the start of the computation.
    pub fn mark_input_done(&mut self) {
        self.input_done_at = Some(Instant::now());
    }

    /// Marks the end of the computation and the start of handing out outputs.
    pub fn mark_output_started(&mut self) {
        self.output_started_at = Some(Instant::now());
    }

    /// Sets the answer of one request. The last call counts.
    pub fn respond(&mut self, index: usize, result: Result<Vec<Tensor>>) {
        self.respond_with(index, result.map(|outputs| (outputs, Vec::new())));
    }

    /// [`Batch::respond`] with response parameters.
    pub fn respond_with(&mut self, index: usize, result: Result<(Vec<Tensor>, Parameters)>) {
        let (Some(job), Some(outcome)) = (self.jobs.get(index), self.outcomes.get_mut(index))
        else {
            return;
        };
        if matches!(outcome, Outcome::Detached) {
            return;
        }
        *outcome = Outcome::Answered(result.map(|(outputs, parameters)| InferResponse {
            model_name: self.model_name.clone(),
            model_version: self.model_version,
            id: job.request.id.clone(),
            parameters,
            outputs,
        }));
    }

    /// Gives every request without an answer this error.
    pub fn fail_all(&mut self, error: &Error) {
        for outcome in &mut self.outcomes {
            if matches!(outcome, Outcome::Unanswered) {
                *outcome = Outcome::Answered(Err(error.clone()));
            }
        }
    }

    /// Gives the requests without an answer back to the queue: the instance stopped working before it began
    /// with them. Only in [`ModelInstance::execute_many`](crate::ModelInstance::execute_many).
    pub fn hand_back(&mut self) {
        for outcome in &mut self.outcomes {
            if matches!(outcome, Outcome::Unanswered) {
                *outcome = Outcome::NotBegun;
            }
        }
    }

    /// Takes the way back of one request out of the batch: for decoupled models. The request itself stays
    /// readable. `None` when it was taken before.
    pub fn detach(&mut self, index: usize) -> Option<ResponseSender> {
        let outcome = self.outcomes.get_mut(index)?;
        let job = self.jobs.get_mut(index)?;
        if matches!(outcome, Outcome::Detached) {
            return None;
        }
        *outcome = Outcome::Detached;
        Some(ResponseSender {
            model_name: self.model_name.clone(),
            model_version: self.model_version,
            request_id: job.request.id.clone(),
            cancellation: job.request.cancellation.clone(),
            responder: Some(std::mem::replace(&mut job.responder, Responder::spent())),
            observer: self.observer.clone(),
            end: StreamEnd {
                received_at: job.request.received_at,
                queued_at: job.queued_at,
                started_at: self.started_at,
                input_done_at: self.input_done_at,
                batch_size: job.request.batch_size,
                step_times: job.request.step_times.clone(),
                responses: 0,
                failure: None,
            },
        })
    }

    /// When the instance took the batch.
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// End of input, start of output: the marks, or `end` where none was set.
    pub fn marks(&self, end: Instant) -> (Instant, Instant) {
        let input_done = self.input_done_at.unwrap_or(self.started_at);
        (input_done, self.output_started_at.unwrap_or(end).max(input_done))
    }

    /// Takes the batch apart: each job with its answer, where there is one.
    pub fn into_outcomes(self) -> impl ExactSizeIterator<Item = (Job, Outcome)> {
        self.jobs.into_iter().zip(self.outcomes)
    }

    /// The answers so far, beside their requests.
    pub fn outcomes(&self) -> impl Iterator<Item = (&Job, &Outcome)> {
        self.jobs.iter().zip(&self.outcomes)
    }
}

//! Concurrency: contexts that send the next request when the last one is answered.

use std::rc::Rc;

use super::{
    progress::RequestFailure,
    request_sender::RequestSender,
    sequence::{SequenceStep, Slot},
    shared::Job,
    worker::Worker,
};

/// One context. perf_analyzer has a thread for each synchronous call, and fewer threads for asynchronous ones. Both keep the
/// same number of requests in flight at any time, so one loop does for both here.
struct Context {
    worker: Rc<Worker>,
    index: usize,
    request_sender: RequestSender,
    slot: Slot,
}

enum NextAction {
    Send,
    /// The load is smaller than before.
    Idle,
    /// All requests of a count are sent.
    CountReached,
    Stop,
}

/// Runs until the load stops, or until the first failure.
pub async fn run(worker: Rc<Worker>, index: usize) {
    let request_sender = RequestSender::new(worker.clone());
    let mut context =
        Context { worker: worker.clone(), index, request_sender, slot: Slot::default() };
    if let Err(failure) = context.run().await {
        worker.fail(index, failure);
    }
}

impl Context {
    async fn run(&mut self) -> Result<(), RequestFailure> {
        loop {
            match self.next_action() {
                NextAction::Send => {
                    let job = self.next_job();
                    self.request_sender.perform(&job).await?;
                }
                NextAction::Idle => {
                    if !self.end_sequence().await? {
                        self.worker.changed.notified().await;
                    }
                }
                NextAction::CountReached => self.worker.changed.notified().await,
                NextAction::Stop => return self.end_sequence().await.map(drop),
            }
        }
    }

    fn next_action(&self) -> NextAction {
        if self.worker.stopping.get() {
            NextAction::Stop
        } else if self.index >= self.worker.contexts.get() {
            NextAction::Idle
        } else if self.worker.shared.progress.take() {
            NextAction::Send
        } else {
            NextAction::CountReached
        }
    }

    fn next_job(&mut self) -> Job {
        match &self.worker.shared.sequences {
            None => self.worker.plain_job(self.index),
            Some(sequences) => sequence_job(sequences.next(&mut self.slot), self.index),
        }
    }

    /// Ends the open sequence with a last request. Returns false if none is open.
    async fn end_sequence(&mut self) -> Result<bool, RequestFailure> {
        let sequences = self.worker.shared.sequences.as_ref();
        let Some(last) = sequences.and_then(|sequences| sequences.finish(&mut self.slot)) else {
            return Ok(false);
        };
        self.request_sender.perform(&sequence_job(last, self.index)).await?;
        Ok(true)
    }
}

/// Makes the job of a step. `grpc_stream`: each sequence has a stream of its own.
pub fn sequence_job(step: SequenceStep, grpc_stream: usize) -> Job {
    let SequenceStep { stream, step, mark } = step;
    Job { stream, step, sequence: Some(mark), grpc_stream, ..Job::default() }
}

//! Concurrency: contexts that send the next request when the last one is answered.

use std::rc::Rc;

use super::{
    call::Line,
    progress::Trouble,
    sequence::{SequenceStep, Slot},
    shared::Job,
    worker::Worker,
};

/// One context. With synchronous calls the real tool has a thread for each; with asynchronous ones it has fewer
/// threads, each keeping its share of the requests under way. Either way so many requests are under way at any
/// time, so that both are the same loop here.
struct Context {
    worker: Rc<Worker>,
    index: usize,
    line: Line,
    slot: Slot,
}

enum Turn {
    Send,
    /// The load is smaller than it was.
    Rest,
    /// All requests of a count are sent.
    Spent,
    Stop,
}

/// Ends when the load stops, or with the first failure.
pub async fn run(worker: Rc<Worker>, index: usize) {
    let line = Line::new(worker.clone());
    let mut context = Context { worker: worker.clone(), index, line, slot: Slot::default() };
    if let Err(trouble) = context.run().await {
        worker.fail(index, trouble);
    }
}

impl Context {
    async fn run(&mut self) -> Result<(), Trouble> {
        loop {
            match self.turn() {
                Turn::Send => {
                    let job = self.next_job();
                    self.line.perform(&job).await?;
                }
                Turn::Rest => {
                    if !self.end_sequence().await? {
                        self.worker.changed.notified().await;
                    }
                }
                Turn::Spent => self.worker.changed.notified().await,
                Turn::Stop => return self.end_sequence().await.map(drop),
            }
        }
    }

    fn turn(&self) -> Turn {
        if self.worker.stopping.get() {
            Turn::Stop
        } else if self.index >= self.worker.contexts.get() {
            Turn::Rest
        } else if self.worker.shared.progress.take() {
            Turn::Send
        } else {
            Turn::Spent
        }
    }

    fn next_job(&mut self) -> Job {
        match &self.worker.shared.sequences {
            None => self.worker.plain_job(self.index),
            Some(sequences) => sequence_job(sequences.next(&mut self.slot), self.index),
        }
    }

    /// Whether there was one to end, by a last request.
    async fn end_sequence(&mut self) -> Result<bool, Trouble> {
        let sequences = self.worker.shared.sequences.as_ref();
        let Some(last) = sequences.and_then(|sequences| sequences.finish(&mut self.slot)) else {
            return Ok(false);
        };
        self.line.perform(&sequence_job(last, self.index)).await?;
        Ok(true)
    }
}

/// `line`: each sequence has a stream of its own.
pub fn sequence_job(step: SequenceStep, line: usize) -> Job {
    let SequenceStep { stream, step, mark } = step;
    Job { stream, step, sequence: Some(mark), line, ..Job::default() }
}

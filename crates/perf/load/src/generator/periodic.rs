//! Periodic concurrency: long requests, to which more are added while the first ones run.

use std::{cell::Cell, rc::Rc};

use galatea_perf_types::settings::Range;

use super::{request_sender::RequestSender, worker::Worker};

/// Every request has a stream of its own. They are few and slow, so one worker's thread carries them all and keeps its counts
/// in cells.
struct Periodic {
    worker: Rc<Worker>,
    range: Range<u64>,
    /// Number of responses after which a request counts for its step.
    period: u64,
    sent: Cell<u64>,
    /// Requests of the last step with fewer responses.
    waiting: Cell<u64>,
}

pub fn begin(worker: &Rc<Worker>, range: Range<u64>, period: u64) {
    let (sent, waiting) = (Cell::new(0), Cell::new(0));
    let periodic = Rc::new(Periodic { worker: worker.clone(), range, period, sent, waiting });
    periodic.add(range.start);
}

impl Periodic {
    fn add(self: &Rc<Self>, count: u64) {
        let count = count.min(self.range.end.saturating_sub(self.sent.get()));
        self.waiting.set(count);
        for _ in 0..count {
            let index = self.sent.replace(self.sent.get() + 1);
            self.worker.spawn(self.clone().send(index as usize));
        }
    }

    async fn send(self: Rc<Self>, index: usize) {
        if self.worker.stopping.get() || !self.worker.shared.progress.take() {
            return;
        }
        let mut job = self.worker.plain_job(0);
        job.grpc_stream = index;
        let mut request_sender = RequestSender::new(self.worker.clone());
        let done =
            request_sender.perform_periodic(&job, self.period, || self.period_reached()).await;
        if let Err(failure) = done {
            self.worker.fail(index, failure);
        }
    }

    fn period_reached(self: &Rc<Self>) {
        self.waiting.set(self.waiting.get() - 1);
        if self.waiting.get() == 0 {
            self.add(self.range.step);
        }
    }
}

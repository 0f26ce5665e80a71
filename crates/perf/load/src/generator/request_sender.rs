//! Sends one request and waits for its response.

use std::{rc::Rc, time::Instant};

use galatea_client::{Caller, InferMark};

use super::{
    progress::RequestFailure,
    shared::{Job, send_failure, validate},
    stream::PendingRequest,
    worker::Worker,
};

/// The means to have one request in flight: a connection, or a place among the requests of a stream. Both are kept from one
/// request to the next.
pub struct RequestSender {
    worker: Rc<Worker>,
    caller: Option<Caller>,
    pending_request: Rc<PendingRequest>,
}

impl RequestSender {
    pub fn new(worker: Rc<Worker>) -> Self {
        Self { worker, caller: None, pending_request: Rc::default() }
    }

    /// Sends a request, waits for its last response and stores the record.
    pub async fn perform(&mut self, job: &Job) -> Result<(), RequestFailure> {
        if self.worker.shared.calls.streaming {
            let start = self.send_on_stream(job).await?;
            self.finish_on_stream(job, start).await?;
        } else {
            self.call(job).await?;
        }
        self.worker.shared.progress.answered();
        Ok(())
    }

    /// Like [`RequestSender::perform`], and calls `at_period` after `period` responses.
    pub async fn perform_periodic(
        &mut self,
        job: &Job,
        period: u64,
        at_period: impl FnOnce(),
    ) -> Result<(), RequestFailure> {
        let start = self.send_on_stream(job).await?;
        let period = usize::try_from(period).unwrap_or(usize::MAX);
        if !self.pending_request.reach(period).await {
            self.pending_request.take_error()?;
            return Err(self.worker.shared.response_failure(
                "Request received final response before request period was reached. Request period must \
                 be at most the total number of responses received by any request.",
            ));
        }
        at_period();
        self.finish_on_stream(job, start).await?;
        self.worker.shared.progress.answered();
        Ok(())
    }

    async fn call(&mut self, job: &Job) -> Result<(), RequestFailure> {
        let worker = &*self.worker;
        let shared = &*worker.shared;
        let prepared = shared.requests.get(job.stream, job.step).map_err(send_failure)?;
        let caller = match &mut self.caller {
            Some(caller) => caller,
            None => {
                let caller = worker.connector.caller().await.map_err(send_failure)?;
                self.caller.insert(caller)
            }
        };
        worker.records.count_sent();
        let mark = InferMark { id: None, sequence: job.sequence };
        let reply = caller.infer(prepared, mark, shared.keep(job)).await;
        let reply = reply.map_err(|error| shared.response_failure(error.message()))?;
        if let Some(expected) = shared.expected(job) {
            validate(expected, &reply.outputs).map_err(|text| shared.response_failure(text))?;
        }
        let mut record = shared.record(job, reply.times.start);
        record.responses.push(shared.epoch.nanos(reply.times.end));
        record.exported = shared.export(job, vec![reply.outputs]);
        worker.records.push(record, Some(&reply.times));
        Ok(())
    }

    async fn send_on_stream(&mut self, job: &Job) -> Result<Instant, RequestFailure> {
        let worker = &*self.worker;
        let prepared = worker.shared.requests.get(job.stream, job.step).map_err(send_failure)?;
        let stream = worker.stream(job.grpc_stream).await?;
        worker.records.count_sent();
        self.pending_request.reset();
        let start = Instant::now();
        stream.send(prepared, job.sequence, &self.pending_request).await?;
        Ok(start)
    }

    async fn finish_on_stream(&mut self, job: &Job, start: Instant) -> Result<(), RequestFailure> {
        self.pending_request.wait_until_done().await;
        self.pending_request.take_error()?;
        let worker = &*self.worker;
        let shared = &*worker.shared;
        let mut record = shared.record(job, start);
        let outputs = self.pending_request.fill(&mut record);
        if let Some(expected) = shared.expected(job) {
            // A decoupled model's last response may have nothing but the flag that it is the last.
            let last = outputs.iter().rev().find(|outputs| !outputs.is_empty());
            let last = last.map_or(&[][..], |outputs| outputs);
            validate(expected, last).map_err(|text| shared.response_failure(text))?;
        }
        record.exported = shared.export(job, outputs);
        worker.records.push(record, None);
        Ok(())
    }
}

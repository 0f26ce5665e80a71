//! An instance of a model in a worker. It sends batches to its worker and reads the responses.

use std::{collections::HashMap, sync::Arc};

use galatea_backend::{
    Batch, ModelInstance, NOT_ITERATIVE, Pipeline, TakenRequest, WaitingBatches,
};
use galatea_config::{ModelConfig, Scheduling};
use galatea_types::{Error, PreparedRequest, Result};

use crate::{
    batch_encoder::BatchEncoder,
    connection::{Connection, Services},
    exception::with_traceback,
    execution::{Execution, ExecutionReply, Reply},
    execution_times::ExecutionTimes,
    requests::ActiveRequests,
    sent_executions::{SentExecution, SentExecutions},
    transport::ReceiveError,
    worker::{ReplyWait, Worker},
};

/// One worker with the state needed to send it requests.
pub struct WorkerInstance<S: Services> {
    is_decoupled: bool,
    /// True if requests may be taken out of their batch to be answered later.
    may_answer_later: bool,
    /// True if requests may come back to be executed again.
    is_iterative: bool,
    /// Requests of the current execution that were taken out of the batch, if they may come back.
    taken: Vec<RunningRequest>,
    worker: Worker<S>,
    encoder: BatchEncoder,
    /// Executions that were sent and have no reply yet.
    sent: Arc<SentExecutions<S>>,
    pace: ExecutionTimes,
}

/// A request that was taken out of its batch.
struct RunningRequest {
    index: usize,
    key: u64,
    request: PreparedRequest,
}

/// Most bytes of tensors that wait in a worker when more than one request waits. Large tensors take long to copy, so sending
/// them early gains nothing, and they would be in memory twice.
const MAX_BYTES_AHEAD: usize = 256 << 10;

impl<S: Services> WorkerInstance<S> {
    /// Builds the instance whose model the worker has initialized. `may_answer_later`: requests may be taken out of their
    /// batch.
    pub fn new(config: &ModelConfig, may_answer_later: bool, worker: Worker<S>) -> Self {
        let version = worker.connection.lifecycle.identity().version;
        let sent = Arc::new(SentExecutions::new(worker.connection.clone()));
        Self {
            is_decoupled: config.is_decoupled(),
            may_answer_later,
            is_iterative: matches!(config.scheduling(), Scheduling::Sequence(s) if s.is_iterative),
            taken: Vec::new(),
            worker,
            encoder: BatchEncoder::new(config, version),
            sent,
            pace: ExecutionTimes::default(),
        }
    }

    fn connection(&self) -> &Arc<Connection<S>> {
        &self.worker.connection
    }

    fn requests(&self) -> &ActiveRequests {
        &self.connection().requests
    }

    /// Writes the message. Returns `None` if every request of the batch is answered already.
    fn prepare(&mut self, batch: &mut Batch) -> Option<Execution> {
        let connection = self.connection().clone();
        if let Some(error) = connection.lifecycle.error() {
            batch.fail_all(error);
            return None;
        }
        let execution = self.encoder.encode(batch, &connection);
        if execution.requests.is_empty() {
            return None;
        }
        batch.mark_input_done();
        connection.waker.start_ticking();
        if self.is_decoupled {
            // Before the worker starts: a first response may come before `execute` has returned there.
            self.take_out(batch, &execution.requests);
        }
        Some(execution)
    }

    /// Sends the message of a batch behind earlier ones. Returns the execution if there is no room.
    fn send(
        &self,
        batch: &Batch,
        execution: Execution,
        wait: ReplyWait,
    ) -> Result<Option<Execution>> {
        let sent =
            SentExecution { number: batch.number(), execution, wait, bytes: byte_size(batch) };
        self.sent.send(sent, &self.encoder.message)
    }

    fn respond(&mut self, batch: &mut Batch, sent: &[(usize, u64)], executed: ExecutionReply) {
        match executed {
            ExecutionReply::Failed { message, traceback } => {
                let name = self.connection().lifecycle.identity().instance.as_deref();
                let error = Error::internal(format!(
                    "Failed to process the request(s) for model '{}', message: {message}",
                    name.unwrap_or_default()
                ));
                self.fail(batch, sent, &error, &traceback);
            }
            ExecutionReply::Responses { by_key, has_raised } => {
                if has_raised {
                    batch.fail_taken();
                }
                self.deliver(batch, sent, by_key);
            }
        }
    }

    fn deliver(&mut self, batch: &mut Batch, sent: &[(usize, u64)], replies: Vec<(u64, Reply)>) {
        let mut replies: HashMap<u64, Reply> = replies.into_iter().collect();
        let mut left = Vec::new();
        for &(index, key) in sent {
            match replies.remove(&key) {
                Some(Reply::ExecutedAgain) if self.is_decoupled => self.put_back(batch, key),
                Some(Reply::ExecutedAgain) => {
                    self.requests().remove(key);
                    batch.execute_again(index);
                }
                Some(Reply::Response(content)) if self.is_decoupled => {
                    content.err().into_iter().for_each(|e| self.requests().fail(key, &e));
                }
                Some(Reply::Response(content)) => {
                    self.requests().remove(key);
                    batch.respond_with(index, content);
                }
                None => left.push((index, key)),
            }
        }
        self.taken.clear();
        // Their responses come through a response sender, or have come already.
        if self.may_answer_later {
            return self.take_out(batch, &left);
        }
        for (index, key) in left {
            batch.respond_with(index, self.requests().wait_for_response(key));
        }
    }

    fn take_out(&mut self, batch: &mut Batch, sent: &[(usize, u64)]) {
        for &(index, key) in sent {
            let Some(TakenRequest { request, responder }) = batch.take(index) else { continue };
            if self.is_iterative {
                self.taken.push(RunningRequest { index, key, request });
            }
            self.requests().attach(key, responder);
        }
    }

    /// Puts a request back into its batch, with its response sender, so that it is executed again.
    fn put_back(&mut self, batch: &mut Batch, key: u64) {
        let Some(position) = self.taken.iter().position(|taken| taken.key == key) else {
            // The request was not kept because the model is not configured as iterative.
            return self.requests().fail(key, &Error::internal(NOT_ITERATIVE));
        };
        let RunningRequest { index, request, .. } = self.taken.swap_remove(position);
        if let Some(responder) = self.requests().take_back(key) {
            batch.put_back(index, TakenRequest { request, responder });
        }
    }

    /// Fails every request that has no response yet. The traceback goes with the first, so that it is logged once.
    fn fail(&self, batch: &mut Batch, sent: &[(usize, u64)], error: &Error, traceback: &str) {
        let mut first = Some(with_traceback(error.clone(), traceback));
        for &(index, key) in sent {
            let error = first.take().unwrap_or_else(|| error.clone());
            self.requests().fail(key, &error);
            self.requests().remove(key);
            batch.respond(index, Err(error));
        }
        batch.fail_all(error);
    }
}

impl<S: Services> ModelInstance for WorkerInstance<S> {
    fn execute(&mut self, batch: &mut Batch) {
        self.begin(batch);
        self.complete(batch);
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        Some(self)
    }
}

/// A worker finds its next request waiting when it has answered one. It reads a message only then, so messages behind the
/// one it executes can be taken back.
impl<S: Services> Pipeline for WorkerInstance<S> {
    fn begin(&mut self, batch: &mut Batch) {
        // Computed before requests are taken out of the batch.
        let wait = wait(batch);
        self.sent.clear();
        let Some(execution) = self.prepare(batch) else { return };
        match self.send(batch, execution, wait) {
            Ok(None) => {}
            // A worker that waits for a message has room for one.
            Ok(Some(_)) => {
                let unread = Some("it does not read its messages");
                batch.fail_all(&self.connection().lifecycle.mark_dead(unread));
            }
            Err(error) => batch.fail_all(&error),
        }
    }

    fn room(&self) -> usize {
        match self.sent.behind_first() {
            (1.., bytes) if bytes >= MAX_BYTES_AHEAD => 0,
            (count, _) => self.pace.depth().saturating_sub(count),
        }
    }

    fn hand_over(&mut self, batch: &mut Batch) -> bool {
        if self.connection().lifecycle.is_dead() {
            return false;
        }
        let (count, bytes) = self.sent.behind_first();
        if count > 0 && bytes + byte_size(batch) > MAX_BYTES_AHEAD {
            return false;
        }
        let wait = wait(batch);
        let Some(execution) = self.prepare(batch) else { return false };
        match self.send(batch, execution, wait) {
            Ok(None) => true,
            Ok(Some(unsent)) => {
                unsent.withdraw(self.connection());
                false
            }
            Err(_) => false,
        }
    }

    fn complete(&mut self, batch: &mut Batch) {
        let Some(sent) = self.sent.take(batch.number()) else { return };
        if batch.execution().input_done.is_none() {
            batch.mark_input_done();
        }
        let (connection, id) = (self.connection().clone(), sent.execution.id);
        let executed = self
            .worker
            .receive(sent.wait, |message| ExecutionReply::read(&connection, message, id));
        batch.mark_output_started();
        self.pace.record(batch.execution().compute_infer());
        match executed {
            Ok(executed) => self.respond(batch, &sent.execution.requests, executed),
            // Detached requests fail when the event thread has read the worker's last events.
            Err(ReceiveError::Disconnected | ReceiveError::TimedOut) => {
                batch.fail_all(&self.connection().lifecycle.mark_dead(None));
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.connection().lifecycle.is_dead()
    }

    fn waiting(&self) -> Arc<dyn WaitingBatches> {
        self.sent.clone()
    }
}

fn byte_size(batch: &Batch) -> usize {
    batch.requests().flat_map(|request| &request.inputs).map(|tensor| tensor.data.len()).sum()
}

/// Returns how to wait. A model that called this one waits for every wake-up; the client of a request notices none.
fn wait(batch: &Batch) -> ReplyWait {
    match batch.pending().any(|pending| pending.context.origin.is_from_model()) {
        true => ReplyWait::SpinThenSleep,
        false => ReplyWait::Sleep,
    }
}

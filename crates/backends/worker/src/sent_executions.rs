//! The executions that a worker was sent and has not answered yet. Those it has not begun can be taken back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use galatea_backend::{ReturnedRequests, WaitingBatches};
use galatea_types::{LockExt as _, Result};

use crate::{
    connection::{Connection, Services},
    execution::Execution,
    wire::OutgoingMessage,
    worker::ReplyWait,
};

pub(crate) struct SentExecution {
    /// Number of the batch.
    pub number: usize,
    pub execution: Execution,
    /// The way in which the instance waits for the reply.
    pub wait: ReplyWait,
    /// Bytes of the batch's tensors.
    pub bytes: usize,
}

/// The executions of one worker. Its instance shares them with those who take requests back.
pub(crate) struct SentExecutions<S: Services> {
    connection: Arc<Connection<S>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Executions in the order in which the worker reads them.
    sent: VecDeque<SentExecution>,
    /// Buffer for a packet that is taken back; empty until there is one.
    packet: Vec<u8>,
}

impl<S: Services> SentExecutions<S> {
    pub fn new(connection: Arc<Connection<S>>) -> Self {
        Self { connection, state: Mutex::default() }
    }

    /// Sends an execution behind earlier ones. Returns it if there is no room for its message.
    pub fn send(
        &self,
        sent: SentExecution,
        message: &OutgoingMessage,
    ) -> Result<Option<Execution>> {
        let number = sent.number;
        // Recorded first, so that it can be taken back as soon as it is sent. The lock is not held while it is sent.
        self.state.lock_unpoisoned().sent.push_back(sent);
        match self.connection.try_send_command(message) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(self.take(number).map(|unsent| unsent.execution)),
            Err(error) => {
                self.take(number);
                Err(error)
            }
        }
    }

    /// Removes the execution of the batch with this number. Returns `None` if it was taken back.
    pub fn take(&self, number: usize) -> Option<SentExecution> {
        let mut state = self.state.lock_unpoisoned();
        let position = state.sent.iter().position(|sent| sent.number == number)?;
        state.sent.remove(position)
    }

    /// Returns the number of executions behind the first, and the bytes of their tensors.
    pub fn behind_first(&self) -> (usize, usize) {
        let state = self.state.lock_unpoisoned();
        let behind = state.sent.iter().skip(1);
        (behind.len(), behind.map(|sent| sent.bytes).sum())
    }

    pub fn clear(&self) {
        self.state.lock_unpoisoned().sent.clear();
    }
}

/// The server keeps a second descriptor of the worker's end of the socket. The worker can no longer read a packet that the
/// server receives there.
impl<S: Services> WaitingBatches for SentExecutions<S> {
    fn take_first_back(&self, from: usize) -> ReturnedRequests {
        let Connection { channels, lifecycle, .. } = &*self.connection;
        let mut state = self.state.lock_unpoisoned();
        let State { sent, packet } = &mut *state;
        while let Some(id) = channels.first_unread() {
            let is_wanted = sent.iter().any(|s| s.execution.id == id && s.number >= from);
            // While the server holds the first packet, the worker could read the one behind it instead. A worker that has
            // ended reads none.
            if !is_wanted && !lifecycle.is_dead() {
                return ReturnedRequests::NotYet;
            }
            let Some(id) = channels.take_unread(packet) else { return ReturnedRequests::Nothing };
            let is_taken = |s: &SentExecution| s.execution.id == id && s.number >= from;
            if let Some(taken) = sent.iter().position(is_taken).and_then(|p| sent.remove(p)) {
                taken.execution.withdraw(&self.connection);
                return ReturnedRequests::Batch(taken.number);
            }
        }
        ReturnedRequests::Nothing
    }
}

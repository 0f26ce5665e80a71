//! The executions that a worker was sent and has no reply to yet, and taking back those it has not begun with.

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
    /// Of its batch.
    pub number: usize,
    pub execution: Execution,
    /// How its reply is waited for.
    pub wait: ReplyWait,
    /// Of its tensors.
    pub bytes: usize,
}

/// The executions of one worker, shared by its instance and those who take requests back.
pub(crate) struct SentExecutions<S: Services> {
    connection: Arc<Connection<S>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order in which the worker gets to them.
    sent: VecDeque<SentExecution>,
    /// For a packet that is taken back; empty until there is one.
    packet: Vec<u8>,
}

impl<S: Services> SentExecutions<S> {
    pub fn new(connection: Arc<Connection<S>>) -> Self {
        Self { connection, state: Mutex::default() }
    }

    /// Sends an execution behind those before it; given back when there is no room for its message.
    pub fn send(
        &self,
        sent: SentExecution,
        message: &OutgoingMessage,
    ) -> Result<Option<Execution>> {
        let number = sent.number;
        // Known before it can be taken back, and not sent under the lock.
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

    /// Removes the execution of the batch with this number. `None`: it was taken back.
    pub fn take(&self, number: usize) -> Option<SentExecution> {
        let mut state = self.state.lock_unpoisoned();
        let position = state.sent.iter().position(|sent| sent.number == number)?;
        state.sent.remove(position)
    }

    /// How many there are behind the first, and how many bytes their tensors have.
    pub fn behind_first(&self) -> (usize, usize) {
        let state = self.state.lock_unpoisoned();
        let behind = state.sent.iter().skip(1);
        (behind.len(), behind.map(|sent| sent.bytes).sum())
    }

    pub fn clear(&self) {
        self.state.lock_unpoisoned().sent.clear();
    }
}

/// The server keeps a second descriptor of the worker's end of the socket and receives from it: whatever is received there
/// the worker has not read, and will not.
impl<S: Services> WaitingBatches for SentExecutions<S> {
    fn take_first_back(&self, from: usize) -> ReturnedRequests {
        let Connection { channels, lifecycle, .. } = &*self.connection;
        let mut state = self.state.lock_unpoisoned();
        let State { sent, packet } = &mut *state;
        while let Some(id) = channels.first_unread() {
            let is_wanted = sent.iter().any(|s| s.execution.id == id && s.number >= from);
            // With the first one in our hands the worker could read the one behind it instead. One that has ended reads
            // none.
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

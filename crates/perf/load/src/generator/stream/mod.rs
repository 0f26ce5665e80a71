//! gRPC streams with many requests in flight, their responses matched by id.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    mem,
    rc::Rc,
    sync::Arc,
};

use galatea_client::{
    Connector, InferMark, OutputTensor, PreparedInfer, SequenceMark, StreamReceiver, StreamReply,
    StreamSender,
};
use galatea_perf_types::record::{Nanos, RequestRecord};
use smallvec::SmallVec;
use tokio::sync::{Mutex, Notify, OnceCell};

use super::{
    progress::RequestFailure,
    shared::{Shared, send_failure},
};

/// The streams of one worker, opened at their first use.
#[derive(Default)]
pub struct Streams {
    slots: RefCell<Vec<Rc<OnceCell<Rc<Stream>>>>>,
}

pub struct Stream {
    shared: Arc<Shared>,
    sender: Mutex<Option<StreamSender>>,
    next_id: Cell<u64>,
    pending: RefCell<HashMap<u64, Rc<PendingRequest>>>,
    /// The reason why no more responses will come.
    broken: RefCell<Option<RequestFailure>>,
}

/// One request in flight on a stream.
#[derive(Default)]
pub struct PendingRequest {
    state: RefCell<ExchangeState>,
    changed: Notify,
}

#[derive(Default)]
struct ExchangeState {
    responses: SmallVec<[Nanos; 1]>,
    last_is_empty: bool,
    outputs: Vec<Vec<OutputTensor>>,
    /// The number of responses that wakes the context.
    awaited: usize,
    done: bool,
    error: Option<RequestFailure>,
}

impl Streams {
    pub async fn get(
        &self,
        shared: &Arc<Shared>,
        connector: &Connector,
        index: usize,
    ) -> Result<Rc<Stream>, RequestFailure> {
        let slot = self.slot(index);
        let stream = slot.get_or_try_init(|| Stream::open(shared, connector)).await?;
        Ok(stream.clone())
    }

    fn slot(&self, index: usize) -> Rc<OnceCell<Rc<Stream>>> {
        let mut slots = self.slots.borrow_mut();
        while slots.len() <= index {
            slots.push(Rc::default());
        }
        slots.get(index).cloned().unwrap_or_default()
    }

    /// Closes the request side of every stream.
    pub async fn finish(&self) {
        let slots = mem::take(&mut *self.slots.borrow_mut());
        for stream in slots.iter().filter_map(|slot| slot.get()) {
            if let Some(sender) = stream.sender.lock().await.take() {
                sender.finish();
            }
        }
    }
}

impl Stream {
    async fn open(shared: &Arc<Shared>, connector: &Connector) -> Result<Rc<Self>, RequestFailure> {
        let (sender, receiver) = connector.stream().await.map_err(send_failure)?;
        let stream = Rc::new(Self {
            shared: shared.clone(),
            sender: Mutex::new(Some(sender)),
            next_id: Cell::new(1),
            pending: RefCell::default(),
            broken: RefCell::default(),
        });
        tokio::task::spawn_local(stream.clone().receive(receiver));
        Ok(stream)
    }

    /// Sends a request. Its responses go to `pending_request`.
    pub async fn send(
        &self,
        request: &PreparedInfer,
        sequence: Option<SequenceMark>,
        pending_request: &Rc<PendingRequest>,
    ) -> Result<(), RequestFailure> {
        // The lock is fair, so requests of a sequence leave in the order in which they came here.
        let mut sender = self.sender.lock().await;
        if let Some(failure) = &*self.broken.borrow() {
            return Err(failure.clone());
        }
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.pending.borrow_mut().insert(id, pending_request.clone());
        let sender = sender.as_mut().ok_or_else(|| send_failure("the stream is closed"))?;
        sender.send(request, InferMark { id: Some(id), sequence }).await.map_err(send_failure)
    }

    async fn receive(self: Rc<Self>, mut receiver: StreamReceiver) {
        let keep = self.shared.keep_on_streams();
        let text = loop {
            match receiver.next(keep).await {
                Some(Ok(reply)) => self.deliver(reply),
                Some(Err(error)) => break error.message().to_owned(),
                None => break "the server closed the stream".to_owned(),
            }
        };
        self.fail_all(self.shared.response_failure(text));
    }

    fn deliver(&self, reply: StreamReply) {
        let Some(id) = reply.id else {
            // Only an error can be a response to no request in particular.
            if let Some(error) = reply.error {
                self.fail_all(self.shared.response_failure(error));
            }
            return;
        };
        let mut pending = self.pending.borrow_mut();
        let last = reply.is_final || reply.error.is_some();
        let pending_request = if last { pending.remove(&id) } else { pending.get(&id).cloned() };
        drop(pending);
        if let Some(pending_request) = pending_request {
            pending_request.take(&self.shared, reply, last);
        }
    }

    fn fail_all(&self, failure: RequestFailure) {
        for (_, pending_request) in self.pending.take() {
            pending_request.end(Some(failure.clone()));
        }
        *self.broken.borrow_mut() = Some(failure);
    }
}

impl PendingRequest {
    /// Clears the state before each request.
    pub fn reset(&self) {
        let mut state = self.state.borrow_mut();
        *state = ExchangeState { awaited: usize::MAX, ..ExchangeState::default() };
    }

    /// Waits for `count` responses; returns `false` if the request ended before.
    pub async fn reach(&self, count: usize) -> bool {
        self.state.borrow_mut().awaited = count;
        loop {
            {
                let state = self.state.borrow();
                if state.error.is_none() && state.responses.len() >= count {
                    return true;
                }
                if state.done {
                    return false;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits for the last response.
    pub async fn wait_until_done(&self) {
        while !self.state.borrow().done {
            self.changed.notified().await;
        }
    }

    pub fn take_error(&self) -> Result<(), RequestFailure> {
        self.state.borrow_mut().error.take().map_or(Ok(()), Err)
    }

    /// Moves the responses' times into the record; returns the outputs of each response.
    pub fn fill(&self, record: &mut RequestRecord) -> Vec<Vec<OutputTensor>> {
        let state = &mut *self.state.borrow_mut();
        record.responses = mem::take(&mut state.responses);
        record.last_response_is_empty = state.last_is_empty;
        mem::take(&mut state.outputs)
    }

    fn take(&self, shared: &Shared, reply: StreamReply, last: bool) {
        if let Some(error) = reply.error {
            return self.end(Some(shared.response_failure(error)));
        }
        let mut state = self.state.borrow_mut();
        state.responses.push(shared.epoch.nanos(reply.at));
        state.last_is_empty = reply.is_empty;
        if shared.calls.export || shared.calls.validate {
            state.outputs.push(reply.outputs);
        }
        state.done = last;
        if last || state.responses.len() == state.awaited {
            self.changed.notify_one();
        }
    }

    fn end(&self, error: Option<RequestFailure>) {
        let mut state = self.state.borrow_mut();
        state.done = true;
        state.error = error;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;

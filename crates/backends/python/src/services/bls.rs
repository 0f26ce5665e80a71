//! Business logic scripting (BLS): requests of a worker to other models, its `exec` and `async_exec`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use galatea_types::{
    Cancellation, Error, InferResponse, LockExt as _, Refused, RequestContext, Responder, Response,
    ResponseSink, Result,
};

use galatea_worker::{
    Message, received_request,
    wire::{OutgoingMessage, ProtocolError, Reader, RequestHead, flag, kind, put_response},
};

use super::PythonConnection;

/// Cancellations of the open calls, by the id that the worker gave each.
#[derive(Default)]
pub(crate) struct BlsCalls(Mutex<HashMap<u64, Cancellation>>);

/// Most open calls of one worker. It stops a model that calls itself, or never waits for a response.
pub(crate) const MAX_OPEN_CALLS: usize = 4096;

impl BlsCalls {
    /// Adds a call. Returns `None` if the worker has too many already.
    pub fn add(&self, call: u64) -> Option<Cancellation> {
        let mut open = self.0.lock_unpoisoned();
        if open.len() >= MAX_OPEN_CALLS {
            return None;
        }
        let cancellation = Cancellation::default();
        open.insert(call, cancellation.clone());
        Some(cancellation)
    }

    pub fn remove(&self, call: u64) {
        self.0.lock_unpoisoned().remove(&call);
    }

    pub fn cancel(&self, call: u64) {
        if let Some(cancellation) = self.0.lock_unpoisoned().get(&call) {
            cancellation.cancel();
        }
    }

    pub fn cancel_all(&self) {
        self.0.lock_unpoisoned().drain().for_each(|(_, cancellation)| cancellation.cancel());
    }
}

/// Sends a request of the worker to its model. The response goes back from the thread that brings it.
pub(crate) fn start(
    connection: &Arc<PythonConnection>,
    message: &Message<'_>,
) -> Result<(), ProtocolError> {
    let header = message.packet.header;
    let call = header.id;
    let is_decoupled = header.has(flag::DECOUPLED);
    let head = RequestHead::read(&mut Reader::new(message.packet.payload.meta))?;
    let admitted = message.admit(&head.inputs);
    let inputs = match admitted {
        Ok(_) => message.tensors(&head.inputs)?,
        Err(_) => Vec::new(),
    };
    let added = connection.services.calls.add(call);
    let is_admitted = added.is_some();
    let cancellation = added.unwrap_or_default();
    let sink = BlsResponder {
        connection: connection.clone(),
        call,
        cancellation: cancellation.clone(),
        is_admitted,
        is_decoupled,
        is_answered: false,
    };
    let responder = Responder::calling(sink);
    let models = &connection.services.server.models;
    let observers = connection.requests.observers_of_call(head.key, head.model);
    let passed = || head.trace_context().map(|trace| trace.child());
    let trace_context = observers.trace_context().or_else(passed).map(Box::new);
    let mut context = RequestContext::from_model(cancellation, observers);
    context.trace_context = trace_context;
    let checked = admitted.map_err(Error::from).and_then(|_held| received_request(&head, inputs));
    let checked = checked.and_then(|request| {
        if !is_admitted {
            return Err(Error::internal(format!(
                "the calling model already has {MAX_OPEN_CALLS} open calls, the most it may have"
            )));
        }
        let policy = models.is_decoupled(head.model, request.model_version);
        check_policy(policy, head.model, is_decoupled)?;
        Ok(request)
    });
    let submitted = match checked {
        Ok(request) => models.infer(request, context, responder),
        Err(error) => Err(Refused::new(error, responder)),
    };
    if let Err(Refused { error, responder }) = submitted {
        let prefix = format!("Model {} - Error when running inference: ", head.model);
        responder.finish(Err(Error::internal(error.prefixed(prefix).message())));
    }
    Ok(())
}

/// Checks that a call can be answered. A missing model is not ready; a decoupled one cannot respond to a call for a single
/// response. The texts are Triton's.
fn check_policy(is_decoupled: Result<bool>, model: &str, expects_many: bool) -> Result<()> {
    match is_decoupled {
        Err(_) => Err(Error::internal(format!(
            "Failed for execute the inference request. Model '{model}' is not ready."
        ))),
        Ok(true) if !expects_many => Err(Error::internal(format!(
            "Model {model} is using the decoupled. The current BLS request call doesn't support models using the \
             decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for \
             decoupled models.'"
        ))),
        Ok(_) => Ok(()),
    }
}

/// Takes the responses to one call.
struct BlsResponder {
    connection: Arc<PythonConnection>,
    call: u64,
    cancellation: Cancellation,
    /// True if the call was added to the open calls.
    is_admitted: bool,
    is_decoupled: bool,
    is_answered: bool,
}

impl ResponseSink for BlsResponder {
    fn respond(&mut self, response: Response) {
        let Response { mut result, is_final } = response;
        if self.is_answered || self.connection.lifecycle.is_dead() {
            return;
        }
        let is_last = is_final || !self.is_decoupled;
        if is_last {
            self.is_answered = true;
            self.leave();
        }
        if result.is_none() && !self.is_decoupled {
            result = Some(Err(Error::internal("Unexpected empty response.")));
        }
        let mut message = OutgoingMessage::new(kind::INFERRED, self.call);
        message.flags = if is_last { flag::FINAL } else { 0 };
        if result.is_none() {
            message.flags |= flag::EMPTY;
        }
        self.send(message, result.as_ref());
    }

    fn is_closed(&self) -> bool {
        self.is_answered || self.cancellation.is_cancelled() || self.connection.lifecycle.is_dead()
    }
}

impl BlsResponder {
    fn leave(&self) {
        if self.is_admitted {
            self.connection.services.calls.remove(self.call);
        }
    }

    fn send(&self, mut message: OutgoingMessage, result: Option<&Result<InferResponse>>) {
        let connection = &*self.connection;
        let start = message.position();
        let mut blocks = connection.memory.allocation();
        let written = put_response(&mut message, 0, result, &mut blocks);
        let sent = written.and_then(|()| connection.channels.send_event(&message));
        let Err(error) = sent else { return };
        // An error always fits into a message.
        blocks.free_from(0);
        message.truncate(start);
        let written = put_response(&mut message, 0, Some(&Err(error)), &mut blocks);
        if written.and_then(|()| connection.channels.send_event(&message)).is_err() {
            let identity = connection.lifecycle.identity();
            log::error!("the response to a BLS request of {identity} was lost");
        }
    }
}

impl Drop for BlsResponder {
    fn drop(&mut self) {
        self.leave();
    }
}

//! Requests of a worker to other models: its `exec` and `async_exec`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use galatea_types::{
    Cancellation, CorrelationId, Error, InferRequest, Refused, RequestedOutput, Responder,
    Response, ResponseSink, Result, Tensor,
};

use crate::{
    link::Link,
    packing::Message,
    parameters,
    wire::{Malformed, Outgoing, Reader, RequestHead, flag, kind, put_response},
};

/// Calls that are not answered yet, by their number.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<u64, Cancellation>>);

impl Calls {
    fn add(&self, call: u64) -> Cancellation {
        let cancellation = Cancellation::default();
        self.lock().insert(call, cancellation.clone());
        cancellation
    }

    fn remove(&self, call: u64) {
        self.lock().remove(&call);
    }

    pub fn cancel(&self, call: u64) {
        if let Some(cancellation) = self.lock().get(&call) {
            cancellation.cancel();
        }
    }

    pub fn cancel_all(&self) {
        self.lock().drain().for_each(|(_, cancellation)| cancellation.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Cancellation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands a call on to its model. The answer goes back from whatever thread gives it.
pub(crate) fn begin(link: &Arc<Link>, message: &Message<'_>) -> Result<(), Malformed> {
    let header = message.packet.header;
    let call = header.id;
    let is_decoupled = header.has(flag::DECOUPLED);
    let head = RequestHead::read(&mut Reader::new(message.packet.payload.meta))?;
    let inputs = head.inputs.iter().map(|tensor| link.tensor(tensor, message));
    let inputs = inputs.collect::<Result<Vec<Tensor>, Malformed>>()?;
    let cancellation = link.calls.add(call);
    let sink = Caller {
        link: link.clone(),
        call,
        cancellation: cancellation.clone(),
        is_decoupled,
        is_answered: false,
    };
    let responder = Responder::calling(sink);
    let models = &link.server.models;
    let checked = request(&head, inputs, cancellation).and_then(|request| {
        let policy = models.is_decoupled(head.model, request.model_version);
        check_policy(policy, head.model, is_decoupled)?;
        Ok(request)
    });
    let handed_on = match checked {
        Ok(request) => models.infer(request, responder),
        Err(error) => Err(Refused::new(error, responder)),
    };
    if let Err(Refused { error, responder }) = handed_on {
        let prefix = format!("Model {} - Error when running inference: ", head.model);
        responder.finish(Err(Error::internal(error.prefixed(prefix).message())));
    }
    Ok(())
}

/// A model that is not there is not ready; one that answers many times cannot answer a call for one.
fn check_policy(is_decoupled: Result<bool>, model: &str, expects_many: bool) -> Result<()> {
    match is_decoupled {
        Err(_) => Err(Error::internal(format!(
            "Failed for execute the inference request. Model '{model}' is not ready."
        ))),
        Ok(true) if !expects_many => Err(Error::internal(format!(
            "Model {model} is using the decoupled. The current BLS request call doesn't support models \
             using the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' \
             or 'async_exec' calls for decoupled models.'"
        ))),
        Ok(_) => Ok(()),
    }
}

fn request(
    head: &RequestHead<'_>,
    inputs: Vec<Tensor>,
    cancellation: Cancellation,
) -> Result<InferRequest> {
    let correlation_id = match (head.correlation_id, head.correlation_text) {
        (0, "") => CorrelationId::None,
        (number, "") => CorrelationId::Number(number),
        (_, text) => CorrelationId::Text(text.to_owned()),
    };
    Ok(InferRequest {
        model_version: (head.model_version >= 0).then_some(head.model_version),
        id: head.id.to_owned(),
        inputs,
        outputs: head.outputs.iter().map(|&name| RequestedOutput::plain(name)).collect(),
        parameters: parameters::read(head.parameters)?,
        correlation_id,
        sequence_start: head.flags & 1 != 0,
        sequence_end: head.flags & 2 != 0,
        priority: u64::try_from(head.priority).unwrap_or(0),
        timeout: (head.timeout_us > 0).then(|| Duration::from_micros(head.timeout_us)),
        cancellation,
        received_at: Instant::now(),
        is_from_model: true,
        ..InferRequest::new(head.model)
    })
}

/// Where the answers to one call arrive.
struct Caller {
    link: Arc<Link>,
    call: u64,
    cancellation: Cancellation,
    is_decoupled: bool,
    is_answered: bool,
}

impl ResponseSink for Caller {
    fn respond(&mut self, response: Response) {
        let Response { mut result, is_final } = response;
        if self.is_answered || self.link.death().is_some() {
            return;
        }
        let is_last = is_final || !self.is_decoupled;
        if is_last {
            self.is_answered = true;
            self.link.calls.remove(self.call);
        }
        if result.is_none() && !self.is_decoupled {
            result = Some(Err(Error::internal("Unexpected empty response.")));
        }
        let mut message = Outgoing::new(kind::INFERRED, self.call);
        message.flags = if is_last { flag::FINAL } else { 0 };
        if result.is_none() {
            message.flags |= flag::EMPTY;
        }
        self.send(message, result.as_ref());
    }

    fn is_closed(&self) -> bool {
        self.is_answered || self.cancellation.is_cancelled() || self.link.death().is_some()
    }
}

impl Caller {
    fn send(&self, mut message: Outgoing, result: Option<&Result<galatea_types::InferResponse>>) {
        let start = message.position();
        let mut blocks = self.link.inbox.placing();
        let placed = put_response(&mut message, result, &mut blocks);
        if !blocks.offsets.is_empty() {
            self.link.wake.start_ticking();
        }
        let sent = placed.and_then(|()| self.link.send_side(&message));
        let Err(error) = sent else { return };
        // An error always finds room.
        blocks.give_back(0);
        message.go_back(start);
        let put = put_response(&mut message, Some(&Err(error)), &mut blocks);
        if put.and_then(|()| self.link.send_side(&message)).is_err() {
            log::error!("the answer to a call of {} was lost", self.link.identity);
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.link.calls.remove(self.call);
    }
}

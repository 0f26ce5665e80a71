//! One execution in a child: requests from a message, and the reply.

use galatea_backend::{Batch, Outcome, PendingRequest};
use galatea_config::ModelConfig;
use galatea_types::{Error, PreparedRequest, RequestContext, Responder, Result};
use galatea_worker::{
    Message, SharedMemory, received_request,
    wire::{OutgoingMessage, ProtocolError, Reader, RequestHead, kind, put_response},
};

use super::subject::Loaded;

/// The requests of one EXECUTE message.
pub(super) struct Execution {
    id: u64,
    /// The requests with their keys, in order, or the error of a request that cannot be understood.
    requests: Vec<(u64, Result<PreparedRequest>)>,
}

impl Execution {
    pub fn read(message: &Message<'_>, config: &ModelConfig) -> Result<Self, ProtocolError> {
        let header = message.packet.header;
        let mut reader = Reader::new(message.packet.payload.meta);
        let requests = (0..header.count).map(|_| request(message, &mut reader, config));
        Ok(Self { id: header.id, requests: requests.collect::<Result<_, _>>()? })
    }

    /// Executes the requests together and returns the reply.
    pub fn run(self, loaded: &mut Loaded, memory: &SharedMemory) -> OutgoingMessage {
        let model = loaded.config.name();
        let mut reply = OutgoingMessage::new(kind::EXECUTED, self.id);
        let (mut keys, mut pending) = (Vec::new(), Vec::new());
        for (key, request) in self.requests {
            match request {
                Ok(request) => {
                    keys.push(key);
                    // Only the outcome counts here.
                    let (context, responder) = (RequestContext::new(), Responder::spent());
                    pending.push(PendingRequest::new(request, context, responder));
                }
                Err(error) => put(&mut reply, key, Err(error), memory),
            }
        }
        let mut batch = Batch::new(model.clone(), loaded.version, pending);
        loaded.instance.execute(&mut batch);
        // Inputs and outputs are dropped before the reply is sent, so that their blocks go back with it.
        for (key, (_, outcome)) in keys.into_iter().zip(batch.into_outcomes()) {
            let result = match outcome {
                Outcome::Answered(result) => result,
                Outcome::Unanswered | Outcome::ExecutedAgain => Err(unanswered(model)),
            };
            put(&mut reply, key, result, memory);
        }
        reply
    }
}

fn request<'a>(
    message: &Message<'a>,
    reader: &mut Reader<'a>,
    config: &ModelConfig,
) -> Result<(u64, Result<PreparedRequest>), ProtocolError> {
    let head = RequestHead::read(reader)?;
    let request = received_request(&head, message.tensors(&head.inputs)?);
    let prepared = request.map(|request| {
        let items = request.inputs.first().and_then(|input| input.shape.first().copied());
        let items = items.filter(|_| config.has_batching()).and_then(|n| u32::try_from(n).ok());
        // The server's engine checked it.
        PreparedRequest::assume_checked(request, items.unwrap_or(1))
    });
    Ok((head.key, prepared))
}

/// Appends a response. One that finds no room is replaced by an error, which always fits.
fn put(
    reply: &mut OutgoingMessage,
    key: u64,
    result: Result<galatea_types::InferResponse>,
    memory: &SharedMemory,
) {
    let start = reply.position();
    let mut blocks = memory.allocation();
    if let Err(error) = put_response(reply, key, Some(&result), &mut blocks) {
        blocks.free_from(0);
        reply.truncate(start);
        let _ = put_response(reply, key, Some(&Err(error)), &mut blocks);
    }
    reply.count += 1;
}

fn unanswered(model: &str) -> Error {
    Error::internal(format!("the backend of model '{model}' gave no response to the request"))
}

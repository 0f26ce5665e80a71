//! One execution: the requests sent to the worker, and its reply.

use crate::{
    connection::{Connection, Services},
    outputs,
    requests::ResponseContent,
    transport::Message,
    wire::{Body, Failure, ProtocolError, Reader, ResponseHead, flag, kind},
    worker::expect,
};

/// The requests of a batch that the worker has to answer.
pub(crate) struct Execution {
    pub id: u64,
    /// Index in the batch, and key of each request.
    pub requests: Vec<(usize, u64)>,
    /// Blocks of the inbox. The worker gives them back.
    pub blocks: Vec<u64>,
}

impl Execution {
    /// Undoes the effects of encoding an execution that the worker does not get.
    pub fn withdraw<S: Services>(&self, connection: &Connection<S>) {
        self.requests.iter().for_each(|&(_, key)| connection.requests.remove(key));
        for &block in &self.blocks {
            connection.memory.free(block);
        }
    }
}

pub(crate) enum ExecutionReply {
    Failed {
        message: String,
        traceback: String,
    },
    /// Responses by key. Requests with a response sender get theirs as events, and errors too if `execute` raised.
    Responses {
        by_key: Vec<(u64, Reply)>,
        has_raised: bool,
    },
}

pub(crate) enum Reply {
    Response(ResponseContent),
    /// The request is to be executed again.
    ExecutedAgain,
}

impl ExecutionReply {
    /// Reads the reply to execution `id`.
    pub fn read<S: Services>(
        connection: &Connection<S>,
        message: &Message<'_>,
        id: u64,
    ) -> Result<Self, ProtocolError> {
        expect(message, kind::EXECUTED)?;
        if message.packet.header.id != id {
            return Err(ProtocolError("it answers another execution"));
        }
        if message.packet.header.has(flag::ERROR) {
            let Failure { message, traceback } = Failure::read(message.packet.payload)?;
            return Ok(Self::Failed {
                message: message.to_owned(),
                traceback: traceback.to_owned(),
            });
        }
        let mut reader = Reader::new(message.packet.payload.meta);
        let responses =
            (0..message.packet.header.count).map(|_| response(connection, message, &mut reader));
        let by_key = responses.collect::<Result<_, _>>()?;
        Ok(Self::Responses { by_key, has_raised: message.packet.header.has(flag::RAISED) })
    }
}

fn response<'a, S: Services>(
    connection: &Connection<S>,
    message: &Message<'a>,
    reader: &mut Reader<'a>,
) -> Result<(u64, Reply), ProtocolError> {
    let head = ResponseHead::read(reader)?;
    if head.body == Body::Rescheduled {
        return Ok((head.key, Reply::ExecutedAgain));
    }
    let request = connection.requests.get(head.key);
    let request = request.ok_or(ProtocolError("it answers no request"))?;
    let config = connection.config.as_deref();
    let content = outputs::read(config, &connection.told, &head, message, Some(&request))?;
    Ok((head.key, Reply::Response(content)))
}

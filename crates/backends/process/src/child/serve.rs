//! The life of a child: its greeting, one model, executions, and its end.

use std::{io, sync::Arc};

use galatea_backend::Backend;
use galatea_types::{Error, Result};
use galatea_worker::{
    ServerConnection,
    wire::{OutgoingMessage, ProtocolError, kind, put_failure},
};
use serde_json::Value;

use super::{
    batch::Execution,
    limits, log_events,
    subject::{self, Loaded},
};
use crate::messages::Subject;

/// Score that makes the kernel kill a child before the server when memory runs out: half of the range upward.
const OOM_SCORE: &str = "500";

/// Serves one model until the server stops the child or is gone. `words`: the arguments of the process, which end with the
/// numbers of its descriptors. `open` constructs the backend from the server's description.
///
/// # Errors
/// When the process was not started by a server, or the server sends an invalid message.
pub fn serve(
    words: &[String],
    open: impl Fn(&Value) -> Result<Arc<dyn Backend>>,
) -> Result<(), ServeError> {
    let connection =
        ServerConnection::inherit(words, log_events::show).map_err(ServeError::NoServer)?;
    galatea_system::mark_process("galatea-model", OOM_SCORE);
    log_events::install(Arc::downgrade(&connection.channels));
    let mut child = Child { connection };
    let greeting = serde_json::json!({ "pid": std::process::id() }).to_string();
    if !child.reply(&OutgoingMessage::with_text(kind::HELLO, &greeting))? {
        return Ok(());
    }
    while child.next(&open)? {}
    Ok(())
}

/// The reason why a child ended early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A person started it.
    #[error("this command is for the server's own use: it runs one isolated model ({0})")]
    NoServer(io::Error),
    /// The server does not follow the protocol.
    #[error("{0}")]
    Malformed(ProtocolError),
    /// A reply found no room in shared memory.
    #[error("{0}")]
    NoRoom(Error),
}

struct Child {
    connection: ServerConnection,
}

impl Child {
    /// Answers the next command that needs no model. Returns false if there is nothing left to do.
    fn next(
        &mut self,
        open: &impl Fn(&Value) -> Result<Arc<dyn Backend>>,
    ) -> Result<bool, ServeError> {
        let received = self.connection.receive(|message| {
            let kind = message.packet.header.kind;
            if !matches!(kind, kind::INIT | kind::COMPLETE) {
                return Err(ProtocolError("a model has to be named first"));
            }
            let subject = serde_json::from_value(message.json()?);
            subject
                .map(|subject: Subject| (kind, subject))
                .map_err(|_| ProtocolError("it names no model"))
        });
        let Some(received) = received else { return Ok(false) };
        let (kind, subject) = received.map_err(ServeError::Malformed)?;
        log_events::show(subject.log_levels);
        let backend =
            limits::limit_memory(subject.memory_limit).and_then(|()| open(&subject.backend));
        let mut reply = OutgoingMessage::new(kind + 1, 0);
        let loaded = backend.and_then(|backend| match &subject.instance {
            Some(instance) => subject::load(&*backend, &subject, instance).map(Some),
            None => {
                reply.meta = subject::complete(&*backend, &subject)?.into_bytes();
                Ok(None)
            }
        });
        match loaded {
            Ok(None) => self.reply(&reply),
            Ok(Some(loaded)) => {
                reply.meta = b"{}".to_vec();
                Ok(self.reply(&reply)? && self.execute_all(loaded)?)
            }
            Err(error) => {
                put_failure(&mut reply, &error);
                self.reply(&reply)
            }
        }
    }

    /// Executes requests. Returns false if the server ends the child.
    fn execute_all(&mut self, mut loaded: Loaded) -> Result<bool, ServeError> {
        let memory = self.connection.memory.clone();
        loop {
            let received = self.connection.receive(|message| match message.packet.header.kind {
                kind::EXECUTE => Execution::read(message, &loaded.config).map(Some),
                kind::FINALIZE => Ok(None),
                _ => Err(ProtocolError("its kind is unknown")),
            });
            let Some(received) = received else { return Ok(false) };
            let Some(execution) = received.map_err(ServeError::Malformed)? else { break };
            let reply = execution.run(&mut loaded, &memory);
            if !self.reply(&reply)? {
                return Ok(false);
            }
        }
        drop(loaded);
        self.reply(&OutgoingMessage::new(kind::FINALIZED, 0))?;
        Ok(false)
    }

    fn reply(&self, message: &OutgoingMessage) -> Result<bool, ServeError> {
        self.connection.reply(message).map_err(ServeError::NoRoom)
    }
}

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use galatea_backend::{Batch, ModelInstance};
use galatea_config::ModelConfig;
use galatea_types::{Error, Result};

use crate::{
    inputs, outputs,
    packing::Message,
    streams::{Answer, Pending},
    wire::{Body, Malformed, Outgoing, Reader, ResponseHead, SentRequest, flag, kind, put_request},
    worker::{Worker, expect},
};

/// Hands batches to its worker and takes the answers.
pub(crate) struct PythonInstance {
    name: String,
    config: Arc<ModelConfig>,
    version: i64,
    /// Names of the model's outputs.
    outputs: Arc<[Arc<str>]>,
    worker: Worker,
    message: Outgoing,
    last_key: u64,
    executions: u64,
}

/// What came back for one execution.
enum Executed {
    Failed(String),
    Answers(Vec<(u64, Answer)>),
}

impl PythonInstance {
    pub fn new(name: &str, config: Arc<ModelConfig>, version: i64, worker: Worker) -> Self {
        let outputs = config.outputs.iter().map(|output| output.name.clone()).collect();
        Self {
            name: name.to_owned(),
            config,
            version,
            outputs,
            worker,
            message: Outgoing::default(),
            last_key: 0,
            executions: 0,
        }
    }

    /// Writes the requests into the message. Those that cannot be sent are answered; gives the others with
    /// their keys.
    fn encode(&mut self, batch: &mut Batch) -> Vec<(usize, u64)> {
        self.executions += 1;
        self.message.restart(kind::EXECUTE, self.executions);
        let link = self.worker.link().clone();
        let mut blocks = link.inbox.placing();
        let mut sent = Vec::with_capacity(batch.len());
        for index in 0..batch.len() {
            let (start, placed) = (self.message.position(), blocks.offsets.len());
            match self.encode_one(batch, index, &mut blocks) {
                Ok(key) => sent.push((index, key)),
                Err(error) => {
                    self.message.go_back(start);
                    blocks.give_back(placed);
                    batch.respond(index, Err(error));
                }
            }
        }
        if !blocks.offsets.is_empty() {
            link.activity.fetch_add(1, Ordering::Relaxed);
            link.wake.start_ticking();
        }
        self.message.count = u32::try_from(sent.len()).unwrap_or(u32::MAX);
        sent
    }

    fn encode_one(
        &mut self,
        batch: &Batch,
        index: usize,
        blocks: &mut crate::memory::Placing<'_>,
    ) -> Result<u64> {
        let request = batch.request(index).ok_or_else(|| Error::internal("no such request"))?;
        let tensors = inputs::for_model(&self.config, request)?;
        let outputs = inputs::wanted_outputs(&self.outputs, request);
        self.last_key += 1;
        let key = self.last_key;
        let sent = SentRequest {
            key,
            model_version: self.version,
            request,
            inputs: &tensors,
            outputs: &outputs,
        };
        put_request(&mut self.message, &sent, blocks)?;
        let pending = Pending::new(request.cancellation.clone(), outputs);
        self.worker.link().streams.add(key, pending);
        Ok(key)
    }

    fn run(&mut self, batch: &mut Batch, sent: &[(usize, u64)]) -> Result<Executed> {
        batch.mark_input_done();
        let link = self.worker.link().clone();
        if self.config.is_decoupled {
            // Before it starts: its first response may come before it has returned.
            self.detach(batch, sent);
        }
        link.send_work(&self.message)?;
        let id = self.executions;
        let executed = self.worker.receive(None, |message| {
            expect(message, kind::EXECUTED)?;
            if message.packet.header.id != id {
                return Err(Malformed("it answers another execution"));
            }
            if message.packet.header.has(flag::ERROR) {
                return message.packet.text().map(|text| Executed::Failed(text.to_owned()));
            }
            read_answers(&link, message).map(Executed::Answers)
        });
        executed.map_err(|_| link.bury(None))
    }

    fn detach(&self, batch: &mut Batch, sent: &[(usize, u64)]) {
        for &(index, key) in sent {
            if let Some(sender) = batch.detach(index) {
                self.worker.link().streams.attach(key, sender);
            }
        }
    }

    fn answer(&self, batch: &mut Batch, sent: &[(usize, u64)], executed: Executed) {
        match executed {
            Executed::Failed(text) => self.fail(batch, sent, &self.failure(&text)),
            Executed::Answers(answers) => {
                let mut answers: HashMap<u64, Answer> = answers.into_iter().collect();
                let mut left = Vec::new();
                for &(index, key) in sent {
                    match answers.remove(&key) {
                        Some(answer) if self.config.is_decoupled => {
                            answer.err().into_iter().for_each(|e| {
                                self.worker.link().streams.fail(key, &e);
                            });
                        }
                        Some(answer) => {
                            self.worker.link().streams.remove(key);
                            batch.respond_with(index, answer);
                        }
                        None => left.push((index, key)),
                    }
                }
                // Their answers come through a response sender, or came already.
                self.detach(batch, &left);
            }
        }
    }

    /// Gives every request that has no answer yet this error.
    fn fail(&self, batch: &mut Batch, sent: &[(usize, u64)], error: &Error) {
        for &(_, key) in sent {
            self.worker.link().streams.fail(key, error);
            self.worker.link().streams.remove(key);
        }
        batch.fail_all(error);
    }

    /// An exception of the model's code.
    fn failure(&self, text: &str) -> Error {
        Error::internal(format!(
            "Failed to process the request(s) for model '{}', message: {text}",
            self.name
        ))
    }
}

impl ModelInstance for PythonInstance {
    fn execute(&mut self, batch: &mut Batch) {
        if let Some(error) = self.worker.link().death() {
            return batch.fail_all(error);
        }
        let sent = self.encode(batch);
        if sent.is_empty() {
            return;
        }
        let outcome = self.run(batch, &sent);
        batch.mark_output_started();
        match outcome {
            Ok(executed) => self.answer(batch, &sent, executed),
            // The detached ones fail when the worker's last words have been read.
            Err(error) => batch.fail_all(&error),
        }
    }
}

fn read_answers(
    link: &crate::link::Link,
    message: &Message<'_>,
) -> Result<Vec<(u64, Answer)>, Malformed> {
    let mut reader = Reader::new(message.packet.payload.meta);
    let count = message.packet.header.count;
    let read = |_| {
        let head = ResponseHead::read(&mut reader)?;
        if head.body == Body::Rescheduled {
            return Ok((head.key, Err(Error::unsupported("requests cannot be rescheduled"))));
        }
        let pending = link.streams.get(head.key).ok_or(Malformed("it answers no request"))?;
        let answer = outputs::answer(link, &head, message, Some(&pending.outputs))?;
        Ok((head.key, answer))
    };
    (0..count).map(read).collect()
}

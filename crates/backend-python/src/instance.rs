use std::{
    collections::{HashMap, VecDeque},
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
    worker::{Waiting, Worker, expect},
};

/// Hands batches to its worker and takes the answers.
pub(crate) struct PythonInstance {
    name: String,
    config: Arc<ModelConfig>,
    version: i64,
    /// Names of the model's outputs.
    outputs: Arc<[Arc<str>]>,
    /// Requests may be taken out of their batch to be answered later.
    may_detach: bool,
    worker: Worker,
    message: Outgoing,
    last_key: u64,
    executions: u64,
}

/// Requests a worker has at once. See docs/adr/0006-python-workers.md for the measurement.
const PIPELINE_DEPTH: usize = 8;

/// What the worker has to answer of a batch.
struct Sent {
    id: u64,
    /// Places in the batch, and keys.
    requests: Vec<(usize, u64)>,
}

/// What became of a batch that was to be sent ahead.
enum Ahead {
    Sent(Sent),
    Complete,
    NotBegun,
}

/// What came back for one execution.
enum Executed {
    Failed(String),
    Answers(Vec<(u64, Answer)>),
}

impl PythonInstance {
    pub fn new(
        name: &str,
        config: Arc<ModelConfig>,
        version: i64,
        may_detach: bool,
        worker: Worker,
    ) -> Self {
        let outputs = config.outputs().iter().map(|output| output.name.clone()).collect();
        Self {
            name: name.to_owned(),
            config,
            version,
            outputs,
            may_detach,
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

    /// Writes the message. `None`: nothing of the batch is left to be done.
    fn begin(&mut self, batch: &mut Batch) -> Option<Sent> {
        if let Some(error) = self.worker.link().death() {
            batch.fail_all(error);
            return None;
        }
        let requests = self.encode(batch);
        if requests.is_empty() {
            return None;
        }
        batch.mark_input_done();
        if self.config.is_decoupled() {
            // Before it starts: its first response may come before it has returned.
            self.detach(batch, &requests);
        }
        Some(Sent { id: self.executions, requests })
    }

    /// Waits for the answers; those of what was sent before must have been taken. False: the worker is gone.
    fn complete(&mut self, batch: &mut Batch, sent: &Sent, waiting: Waiting) -> bool {
        let executed = self.receive(sent.id, waiting);
        batch.mark_output_started();
        match executed {
            Ok(executed) => {
                self.answer(batch, &sent.requests, executed);
                true
            }
            // The detached ones fail when the worker's last words have been read.
            Err(error) => {
                batch.fail_all(&error);
                false
            }
        }
    }

    /// Sends a batch, perhaps after others.
    fn begin_ahead(&mut self, batch: &mut Batch) -> Ahead {
        if self.worker.link().death().is_some() {
            return Ahead::NotBegun;
        }
        let Some(sent) = self.begin(batch) else { return Ahead::Complete };
        match self.worker.link().try_send_work(&self.message) {
            Ok(true) => Ahead::Sent(sent),
            // The worker has enough for now, or is gone.
            Ok(false) | Err(_) => {
                self.forget(&sent);
                Ahead::NotBegun
            }
        }
    }

    fn receive(&mut self, id: u64, waiting: Waiting) -> Result<Executed> {
        let link = self.worker.link().clone();
        let executed = self.worker.receive(waiting, |message| {
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
                        Some(answer) if self.config.is_decoupled() => {
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
                if self.may_detach {
                    return self.detach(batch, &left);
                }
                for (index, key) in left {
                    let answer = self.worker.link().streams.wait_for_answer(key);
                    batch.respond_with(index, answer);
                }
            }
        }
    }

    /// Nothing is expected of the worker for these.
    fn forget(&self, sent: &Sent) {
        sent.requests.iter().for_each(|&(_, key)| self.worker.link().streams.remove(key));
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
        let Some(sent) = self.begin(batch) else { return };
        match self.worker.link().send_work(&self.message) {
            Ok(()) => drop(self.complete(batch, &sent, waiting(batch))),
            Err(error) => batch.fail_all(&error),
        }
    }

    fn pipeline_depth(&self) -> usize {
        PIPELINE_DEPTH
    }

    /// The worker finds its next request waiting when it has answered one. It takes a message only then: what
    /// waits behind the one it dies of was not begun.
    fn execute_many(&mut self, batches: Vec<Batch>, done: &mut dyn FnMut(Batch)) {
        let mut under_way = VecDeque::with_capacity(batches.len());
        for mut batch in batches {
            match self.begin_ahead(&mut batch) {
                Ahead::Sent(sent) => under_way.push_back((batch, sent)),
                Ahead::Complete => done(batch),
                Ahead::NotBegun => {
                    batch.hand_back();
                    done(batch);
                }
            }
        }
        let mut is_gone = false;
        for (mut batch, sent) in under_way {
            match is_gone {
                false => is_gone = !self.complete(&mut batch, &sent, Waiting::Asleep),
                true => {
                    self.forget(&sent);
                    batch.hand_back();
                }
            }
            done(batch);
        }
    }
}

/// Between models every wake-up is time that the caller waits; a client far away notices none of it.
fn waiting(batch: &Batch) -> Waiting {
    match batch.requests().any(|request| request.is_from_model) {
        true => Waiting::Awake,
        false => Waiting::Asleep,
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

//! The way of a request's responses from its library to its client.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Instant,
};

use galatea_backend::{Batch, ResponseSender, TakenRequest};
use galatea_telemetry::ResponseRecord;
use galatea_triton_c::call::Misuse;
use galatea_types::{
    Cancellation, CondvarExt as _, Error, LockExt as _, Parameters, PreparedRequest, Result, Tensor,
};

use crate::model_object::ModelObject;

/// The content of a response.
pub(crate) type Content = Result<(Vec<Tensor>, Parameters)>;

/// Most responses that wait for the end of an execution.
const MOST_WAITING: usize = 1024;

/// The responses of one request. They wait until the library returns from the execution, if the model gives one response for
/// each request: then the request is counted with the times that the library has reported. After that, and for other models,
/// they are sent as they come, from the threads of the library.
///
/// It lives as long as the request, a response or a factory is in the hands of the library. If the last of them goes without
/// the last response, the client gets an error.
pub(crate) struct Outlet {
    /// The request without its inputs.
    pub head: PreparedRequest,
    pub model: Arc<ModelObject>,
    /// The number of the instance that executes it.
    pub instance: usize,
    pub config: Arc<galatea_config::ModelConfig>,
    cancellation: Cancellation,
    progress: Mutex<Progress>,
    has_ended: Condvar,
}

#[derive(Default)]
struct Progress {
    /// Sends responses; `None` while they wait, while a thread sends, and after the last one.
    sender: Option<ResponseSender>,
    /// Events that are not sent yet.
    events: VecDeque<Event>,
    /// The end of the request, if it is not sent yet.
    last: Option<LastResponse>,
    is_sending: bool,
    has_last: bool,
    /// True if somebody waits for the end.
    is_awaited: bool,
    /// True if the library returned the request to be executed again.
    is_again: bool,
    times: Option<ComputeTimes>,
}

enum Event {
    State(Tensor),
    Response(Content),
    Report(ResponseRecord),
}

/// The last response; `None` for an end without one.
type LastResponse = Option<Content>;

/// The instants that a library has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComputeTimes {
    pub input_done: Instant,
    pub output_start: Instant,
}

/// The parts of an outlet.
pub(crate) struct OutletParts {
    pub head: PreparedRequest,
    pub model: Arc<ModelObject>,
    pub config: Arc<galatea_config::ModelConfig>,
    pub instance: usize,
    pub cancellation: Cancellation,
    /// Sends responses at once; without it they wait for the end of the execution.
    pub sender: Option<ResponseSender>,
}

impl Outlet {
    pub fn new(parts: OutletParts) -> Self {
        let OutletParts { head, model, config, instance, cancellation, sender } = parts;
        let progress = Progress { sender, ..Progress::default() };
        Self {
            head,
            model,
            instance,
            config,
            cancellation,
            progress: Mutex::new(progress),
            has_ended: Condvar::new(),
        }
    }

    /// Returns true if the client has gone or has cancelled the request.
    pub fn is_cancelled(&self) -> bool {
        let is_closed = |sender: &ResponseSender| sender.is_cancelled();
        self.cancellation.is_cancelled()
            || self.progress.lock_unpoisoned().sender.as_ref().is_some_and(is_closed)
    }

    /// Sends a response, or the end of the request.
    ///
    /// # Errors
    /// The request has its last response already.
    pub fn send(&self, content: Option<Content>, is_last: bool) -> Result<()> {
        match (content, is_last) {
            (content, true) => accepted(self.end(content)),
            (Some(content), false) => self.add(Event::Response(content)),
            (None, false) => Ok(()),
        }
    }

    /// Replaces a state of the request's sequence.
    ///
    /// # Errors
    /// The request has its last response already.
    pub fn set_state(&self, state: Tensor) -> Result<()> {
        self.add(Event::State(state))
    }

    /// Reports the times of a response. A report that comes after the last response is not counted.
    pub fn report(&self, record: ResponseRecord) {
        // The interface tells libraries to report after they have sent.
        let _ = self.add_unless_ended(Event::Report(record));
    }

    /// Notes the times that the library has reported for the request. They count if the client does not have its last response.
    pub fn set_times(&self, times: ComputeTimes) {
        let mut progress = self.progress.lock_unpoisoned();
        match &mut progress.sender {
            Some(sender) => sender.set_compute_times(times.input_done, times.output_start),
            None => progress.times = Some(times),
        }
    }

    /// Notes that the request is to be executed again.
    pub fn execute_again(&self) {
        let mut progress = self.progress.lock_unpoisoned();
        progress.is_again = true;
        self.tell_of_end(&progress);
    }

    fn add(&self, event: Event) -> Result<()> {
        accepted(self.add_unless_ended(event)?)
    }

    fn add_unless_ended(&self, event: Event) -> Result<bool> {
        let mut progress = self.progress.lock_unpoisoned();
        if progress.has_last {
            return Ok(false);
        }
        if progress.events.len() >= MOST_WAITING {
            let text = format!(
                "{MOST_WAITING} responses of the request wait to be sent, the most there may be"
            );
            return Err(Error::unavailable(text));
        }
        progress.events.push_back(event);
        self.drain(progress);
        Ok(true)
    }

    /// Ends the request, unless it has ended.
    fn end(&self, last: LastResponse) -> bool {
        let mut progress = self.progress.lock_unpoisoned();
        if progress.has_last {
            return false;
        }
        progress.has_last = true;
        progress.last = Some(last);
        self.tell_of_end(&progress);
        self.drain(progress);
        true
    }

    /// Sends the waiting events, unless another thread does. The lock is not held meanwhile: a client may be another library, which is
    /// called.
    fn drain<'a>(&'a self, mut progress: MutexGuard<'a, Progress>) {
        if progress.is_sending {
            return;
        }
        let Some(mut sender) = progress.sender.take() else { return };
        progress.is_sending = true;
        loop {
            let event = progress.events.pop_front();
            let last = if event.is_none() { progress.last.take() } else { None };
            if event.is_none() && last.is_none() {
                progress.is_sending = false;
                progress.sender = Some(sender);
                return;
            }
            let times = progress.times.take();
            drop(progress);
            if let Some(ComputeTimes { input_done, output_start }) = times {
                sender.set_compute_times(input_done, output_start);
            }
            match event {
                Some(Event::State(state)) => log_failure(sender.set_state(state)),
                Some(Event::Report(record)) => sender.report(&record),
                Some(Event::Response(content)) => sender.send(content),
                None => {
                    sender.finish(last.flatten());
                    self.progress.lock_unpoisoned().is_sending = false;
                    return;
                }
            }
            progress = self.progress.lock_unpoisoned();
        }
    }

    /// Wakes the waiting thread, if there is one: without one the call of the system would be for nothing.
    fn tell_of_end(&self, progress: &Progress) {
        if progress.is_awaited {
            self.has_ended.notify_all();
        }
    }

    /// Waits until the library has sent the last response, or returns the request to be executed again.
    pub fn wait(&self) {
        let mut progress = self.progress.lock_unpoisoned();
        progress.is_awaited = true;
        while !progress.has_last && !progress.is_again {
            progress = self.has_ended.wait_unpoisoned(progress);
        }
    }

    /// Ends the part of the execution: gives the response to the batch if there is one, else takes the request out of it.
    pub fn leave(&self, batch: &mut Batch, index: usize) {
        let mut progress = self.progress.lock_unpoisoned();
        if progress.has_last {
            let (events, last) = (std::mem::take(&mut progress.events), progress.last.take());
            let times = progress.times.take();
            drop(progress);
            set_times(batch, index, times);
            let content = only_content(batch, index, events, last.flatten());
            return batch.respond_with(index, content);
        }
        if progress.is_again {
            drop(progress);
            return batch.execute_again(index);
        }
        let Some(TakenRequest { mut responder, .. }) = batch.take(index) else { return };
        if let Some(times) = progress.times.take() {
            responder.set_compute_times(times.input_done, times.output_start);
        }
        progress.sender = Some(responder);
        self.drain(progress);
    }

    /// Puts a request that was taken out of the batch before, and is to be executed again, back into it.
    pub fn put_back(&self, batch: &mut Batch, index: usize, inputs: &[Tensor]) {
        let sender = {
            let mut progress = self.progress.lock_unpoisoned();
            if !progress.is_again || progress.has_last {
                return;
            }
            progress.sender.take()
        };
        if let Some(responder) = sender {
            let mut request = self.head.clone();
            request.add_inputs(inputs.iter().cloned());
            batch.put_back(index, TakenRequest { request, responder });
        }
    }

    /// Ends the request with an error, unless it has its last response.
    pub fn fail(&self, error: &Error) {
        self.end(Some(Err(error.clone())));
    }
}

fn log_failure(result: Result<()>) {
    if let Err(error) = result {
        log::error!("a state of a sequence is lost: {error}");
    }
}

fn accepted(is_accepted: bool) -> Result<()> {
    match is_accepted {
        true => Ok(()),
        false => {
            let text = "the request has its last response already".to_owned();
            Err(Error::invalid_arg(text.clone()).with_source(Misuse(text)))
        }
    }
}

fn set_times(batch: &mut Batch, index: usize, times: Option<ComputeTimes>) {
    if let Some(ComputeTimes { input_done, output_start }) = times
        && let Some(pending) = batch.pending_at_mut(index)
    {
        pending.context.timeline.input_done = Some(input_done);
        pending.context.timeline.output_start = Some(output_start);
    }
}

/// Returns the one response that a request must have, after the states in `events` are kept.
fn only_content(
    batch: &mut Batch,
    index: usize,
    events: VecDeque<Event>,
    last: LastResponse,
) -> Content {
    let (mut count, mut only) = (0, None);
    for event in events {
        match event {
            Event::State(state) => {
                let kept = batch.pending_at_mut(index).map(|pending| pending.set_state(state));
                log_failure(kept.unwrap_or(Ok(())));
            }
            Event::Report(_) => {}
            Event::Response(content) => (count, only) = (count + 1, Some(content)),
        }
    }
    if let Some(content) = last {
        (count, only) = (count + 1, Some(content));
    }
    match only {
        Some(content) if count == 1 => content,
        None => Err(Error::internal("received an unexpected null response")),
        Some(_) => Err(Error::internal(format!("expected a single response, got {count}"))),
    }
}

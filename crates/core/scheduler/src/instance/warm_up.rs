//! Warm-up: requests that an instance executes after its start and before it gets requests of clients.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use galatea_backend::{Batch, ModelInstance, PendingRequest, SequenceStates};
use galatea_types::{Error, RequestContext, Responder, Response, ResponseSink, Result};

use super::{
    context::{ModelContext, WarmupSample},
    responses::Responses,
    slot::{InstanceSlot, panic_message},
};
use crate::{
    accounting::StreamAccounting,
    sync::{LockExt, Mutex, mpsc},
};

/// The largest number of errors of one execution that are reported. A stream may have any number of them.
const MOST_ERRORS: usize = 16;

/// Executes all samples. As in Triton, statistics count them.
///
/// # Errors
/// The errors of the first execution that has any.
pub(super) fn warm_up(
    slot: &InstanceSlot,
    context: &ModelContext,
    instance: &mut dyn ModelInstance,
) -> Result<()> {
    let execution = Execution { slot, context, responses: slot.responses.unlogged() };
    for sample in &*context.warm_up {
        for iteration in 1..=sample.count {
            // Ends once the queue is closed, so that requests still queued wait no longer.
            if slot.queue.is_closed_by(slot.index, context.clock.now()) {
                return Ok(());
            }
            let (model, name, sample_name) = (&context.name, &slot.spec.name, &sample.name);
            log::debug!(
                "model '{model}' instance {name} is running warmup sample '{sample_name}' for iteration {iteration}"
            );
            execution.run_sample(sample, instance)?;
        }
    }
    Ok(())
}

struct Execution<'a> {
    slot: &'a InstanceSlot,
    context: &'a ModelContext,
    /// Failed requests are not logged: the starter of the instance reports the failure.
    responses: Responses,
}

impl Execution<'_> {
    fn run_sample(&self, sample: &WarmupSample, instance: &mut dyn ModelInstance) -> Result<()> {
        let (together, rounds) = match self.context.has_batching {
            true => (sample.batch_size, 1),
            false => (1, sample.batch_size),
        };
        for _ in 0..rounds {
            let errors = self.run(sample, together, instance);
            let messages: String =
                errors.iter().map(|error| format!("{}; ", error.message())).collect();
            // The first error may have a cause, which is kept.
            if let Some(first) = errors.into_iter().next() {
                // Triton's text.
                let text = format!("failed to run warmup sample '{}': {messages}", sample.name);
                return Err(Error::invalid_arg(text).with_source(first));
            }
        }
        Ok(())
    }

    /// Executes equal requests and waits until each has its last response. Returns the errors among the responses.
    fn run(
        &self,
        sample: &WarmupSample,
        count: u32,
        instance: &mut dyn ModelInstance,
    ) -> Vec<Error> {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let (is_open, end) = mpsc::channel();
        let pending = |_| {
            let sink = Sink { errors: errors.clone(), _is_open: is_open.clone() };
            self.pending(sample, Responder::calling(sink))
        };
        let pending = (0..count).map(pending).collect();
        drop(is_open);
        let panicked = self.execute(pending, instance);
        // Nothing is ever sent: the loop ends after the last response.
        end.iter().for_each(|()| {});
        let mut errors = std::mem::take(&mut *errors.lock_unpoisoned());
        if errors.is_empty() {
            errors.extend(panicked);
        }
        errors
    }

    /// Executes the requests. Returns the panic, if there was one: requests that the backend took may still have been answered.
    fn execute(
        &self,
        pending: Vec<PendingRequest>,
        instance: &mut dyn ModelInstance,
    ) -> Option<Error> {
        let mut batch = Batch::by_clock(
            &self.context.clock,
            self.context.name.clone(),
            self.context.version,
            pending,
        );
        let streams = self.context.may_answer_later.then(|| {
            let accounting = self.responses.accounting.clone();
            StreamAccounting::observe(&mut batch, None, accounting, &self.slot.streams)
        });
        let result = catch_unwind(AssertUnwindSafe(|| instance.execute(&mut batch)));
        let panicked = result.err().map(|panic| {
            let (instance, reason) = (&self.slot.spec.name, panic_message(&*panic));
            Error::internal(format!("instance '{instance}' panicked: {reason}"))
        });
        if let Some(error) = &panicked {
            batch.fail_all(error);
        }
        // One execution is enough for a warm-up.
        for (_, pending) in batch.take_executed_again() {
            pending.responder.discard();
        }
        self.responses.answer_batch(batch, streams.as_deref());
        panicked
    }

    fn pending(&self, sample: &WarmupSample, responder: Responder) -> PendingRequest {
        let now = self.context.clock.now();
        let mut context = RequestContext::received_at(now);
        context.timeline.queued = Some(now);
        let mut pending = PendingRequest::new(sample.request.clone(), context, responder);
        if let Some(sequences) = &self.context.sequences {
            sequences.complete(&mut pending, SequenceStates::default(), true);
            pending.states = pending.states.uncounted();
            sample.added.iter().for_each(|tensor| pending.request.replace_input(tensor));
        }
        pending
    }
}

/// Receives the responses to one request and keeps only the errors.
struct Sink {
    errors: Arc<Mutex<Vec<Error>>>,
    /// Dropped after the last response.
    _is_open: mpsc::Sender<()>,
}

impl ResponseSink for Sink {
    fn respond(&mut self, response: Response) {
        if let Some(Err(error)) = response.result {
            let mut errors = self.errors.lock_unpoisoned();
            if errors.len() < MOST_ERRORS {
                errors.push(error);
            }
        }
    }
}

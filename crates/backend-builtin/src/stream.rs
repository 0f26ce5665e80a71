//! What the decoupled models have in common: a thread per request, checks, cancellation.

use std::{
    sync::{Arc, Condvar, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use galatea_backend::ResponseSender;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{CondvarExt, DataType, Error, LockExt, Result};

/// How soon a cancelled request is noticed.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The requests an instance still answers, each on a thread of its own. Dropped, it ends them.
#[derive(Default)]
pub(crate) struct OpenStreams {
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl OpenStreams {
    /// Answers a request on its own thread.
    pub fn open(
        &mut self,
        sender: ResponseSender,
        answer: impl FnOnce(ResponseSender, &Stop) + Send + 'static,
    ) {
        self.threads.retain(|thread| !thread.is_finished());
        let stop = self.stop.clone();
        // Without a thread the sender is dropped, which answers with an error.
        let thread = thread::Builder::new().spawn(move || answer(sender, &stop));
        self.threads.extend(thread);
    }
}

impl Drop for OpenStreams {
    fn drop(&mut self) {
        self.stop.set();
        for thread in self.threads.drain(..) {
            // A panic in it dropped its sender, which answered.
            let _ = thread.join();
        }
    }
}

/// Tells the threads of an instance that it goes.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    fn set(&self) {
        let (is_set, changed) = &*self.0;
        *is_set.lock_unpoisoned() = true;
        changed.notify_all();
    }

    /// Waits so long; false when the request was cancelled or the instance goes.
    pub fn pause(&self, duration: Duration, sender: &ResponseSender) -> bool {
        let started = Instant::now();
        loop {
            let rest = duration.saturating_sub(started.elapsed());
            if self.is_set_within(rest.min(LOOK_INTERVAL)) || sender.is_cancelled() {
                return false;
            }
            if rest <= LOOK_INTERVAL {
                return true;
            }
        }
    }

    /// Waits so long, whether the request is cancelled or not; false when the instance goes.
    pub fn rest(&self, duration: Duration) -> bool {
        !self.is_set_within(duration)
    }

    fn is_set_within(&self, timeout: Duration) -> bool {
        let (is_set, changed) = &*self.0;
        let is_set = is_set.lock_unpoisoned();
        *changed.wait_timeout_while_unpoisoned(is_set, timeout, |is_set| !*is_set).0
    }
}

/// The error a cancelled request ends with.
pub(crate) fn cancelled() -> Error {
    Error::cancelled("Request was cancelled")
}

pub(crate) fn check_decoupled(config: &ModelConfig) -> Result<()> {
    if config.is_decoupled() {
        return Ok(());
    }
    let (model, backend) = (config.name(), config.backend());
    Err(Error::invalid_arg(format!(
        "model '{model}' of backend '{backend}' needs model_transaction_policy {{ decoupled: true }}"
    )))
}

/// Checks that there are just these tensors, in this order: name, type, and whether it has one element.
pub(crate) fn check_tensors(
    kind: &str,
    specs: &[TensorSpec],
    expected: &[(&str, DataType, bool)],
) -> Result<()> {
    let (count, wanted) = (specs.len(), expected.len());
    if count != wanted {
        let plural = if wanted == 1 { "" } else { "s" };
        return Err(Error::invalid_arg(format!("expected {wanted} {kind}{plural}, got {count}")));
    }
    let ordinals = ["first", "second", "third"];
    for ((spec, &expected), ordinal) in specs.iter().zip(expected).zip(ordinals) {
        let (name, got) = (expected.0, &spec.name);
        if **got != *name {
            return Err(Error::invalid_arg(format!(
                "expected {ordinal} {kind} tensor name to be {name}, got {got}"
            )));
        }
        check_tensor(spec, expected)?;
    }
    Ok(())
}

fn check_tensor(
    spec: &TensorSpec,
    (name, data_type, is_single): (&str, DataType, bool),
) -> Result<()> {
    let wanted = match &*spec.dims {
        [1] => None,
        [_] if !is_single => None,
        _ if is_single => Some("be [1]"),
        _ => Some("have one dimension"),
    };
    if let Some(wanted) = wanted {
        let got = &spec.dims;
        return Err(Error::invalid_arg(format!("expected {name} shape to {wanted}, got {got}")));
    }
    if spec.data_type == data_type {
        return Ok(());
    }
    let got = spec.data_type;
    Err(Error::invalid_arg(format!("expected {name} datatype to be {data_type}, got {got}")))
}

/// The elements of a tensor of 32-bit whole numbers.
pub(crate) fn words(data: &[u8]) -> impl ExactSizeIterator<Item = [u8; 4]> {
    data.as_chunks().0.iter().copied()
}

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    time::Duration,
};

use galatea_backend::{Batch, InstanceSpec, Model, ModelInstance};
use galatea_types::{Error, Result};

use crate::{
    desk::Desk,
    line::{Line, Pulled},
    ticket::Ticket,
};

const FIRST_BACK_OFF: Duration = Duration::from_millis(100);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);

/// What all instance threads of a model share.
pub(crate) struct Shared {
    pub line: Line,
    pub desk: Desk,
    pub version: i64,
    pub model: Arc<dyn Model>,
}

/// Runs on the thread of one instance: makes the instance, tells the outcome to `ready`, and executes
/// batches until the line is closed and empty.
pub(crate) fn run(shared: &Shared, spec: InstanceSpec, ready: mpsc::Sender<Result<()>>) {
    let _end = EndOfThread(&shared.line);
    match make(shared, &spec) {
        Ok(instance) => {
            // The starter waits for every thread, so this send cannot fail in a way that matters.
            let _ = ready.send(Ok(()));
            // The starter waits until no thread can tell anything any more.
            drop(ready);
            Worker { shared, spec, instance }.serve();
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    }
}

struct EndOfThread<'a>(&'a Line);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.thread_ended();
    }
}

struct Worker<'a> {
    shared: &'a Shared,
    spec: InstanceSpec,
    instance: Box<dyn ModelInstance>,
}

impl Worker<'_> {
    fn serve(mut self) {
        let mut done = 0;
        loop {
            match self.shared.line.pull(done) {
                Pulled::Batch(tickets) => {
                    done = tickets.len();
                    if !self.execute(tickets) {
                        self.shared.line.settle(std::mem::take(&mut done));
                        let Some(worker) = self.renew() else { return };
                        self = worker;
                    }
                }
                Pulled::Dropped(dropped) => {
                    done = dropped.len();
                    self.shared.desk.answer_dropped(dropped);
                }
                Pulled::Closed => return discard(self.instance),
            }
        }
    }

    /// Executes one batch and answers it. False: the instance panicked and must not be used again.
    fn execute(&mut self, tickets: Vec<Ticket>) -> bool {
        let desk = &self.shared.desk;
        let places = match desk.completion {
            Some(_) => tickets.iter().map(|t| t.place).collect(),
            None => Vec::new(),
        };
        for _ in &tickets {
            desk.statistics.pending_down();
        }
        let jobs = tickets.into_iter().map(|t| t.job).collect();
        let mut batch = Batch::new(desk.model_name.clone(), self.shared.version, jobs);
        // The batch stays whole whatever the backend was doing: its answers are set one by one.
        let result = catch_unwind(AssertUnwindSafe(|| self.instance.execute(&mut batch)));
        if let Err(panic) = &result {
            let (model, instance) = (&desk.model_name, &self.spec.name);
            log::error!("instance {instance} of model '{model}' panicked: {}", reason(&**panic));
            batch.fail_all(&Error::internal(format!(
                "instance '{instance}' of model '{model}' failed unexpectedly while executing"
            )));
        }
        desk.answer_batch(batch, &places);
        result.is_ok()
    }

    /// Throws the instance away and makes it anew, however often it takes. `None`: the line was closed
    /// before that worked.
    fn renew(self) -> Option<Self> {
        let Self { shared, spec, instance } = self;
        discard(instance);
        let mut back_off = FIRST_BACK_OFF;
        let mut is_lost = false;
        loop {
            let error = match make(shared, &spec) {
                Ok(instance) => {
                    if is_lost {
                        shared.line.regain_instance();
                    }
                    return Some(Self { shared, spec, instance });
                }
                Err(error) => error,
            };
            log::error!("cannot make instance {} anew: {error}", spec.name);
            if !std::mem::replace(&mut is_lost, true) {
                let stranded = shared.line.lose_instance(&error);
                let count = stranded.len();
                shared.desk.answer_outage(stranded, &error);
                shared.line.settle(count);
            }
            if shared.line.is_closed_within(back_off) {
                return None;
            }
            back_off = (back_off * 2).min(LONGEST_BACK_OFF);
        }
    }
}

fn make(shared: &Shared, spec: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
    catch_unwind(AssertUnwindSafe(|| shared.model.new_instance(spec))).unwrap_or_else(|panic| {
        let model = &shared.desk.model_name;
        let reason = reason(&*panic);
        Err(Error::internal(format!(
            "making instance '{}' of model '{model}' panicked: {reason}",
            spec.name
        )))
    })
}

/// Drops an instance; a backend that panics even then does no further harm.
fn discard(instance: Box<dyn ModelInstance>) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(instance))) {
        log::error!("dropping an instance panicked: {}", reason(&*panic));
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

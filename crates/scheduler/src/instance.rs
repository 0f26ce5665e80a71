use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use galatea_backend::{Batch, InstanceAlarm, InstanceSpec, Model, ModelInstance};
use galatea_types::{Error, Result};

use crate::{
    desk::Desk,
    execution::Execution,
    line::{Line, Pulled},
    open_requests::OpenRequests,
    pace::Pace,
    queue::Queued,
    ticket::Ticket,
};

/// How long requests may wait, unanswered, before an instance that keeps dying is tried again.
const PATIENCE: Duration = Duration::from_secs(1);

/// What all instance threads of a model share.
pub(crate) struct Shared {
    pub line: Arc<Line>,
    pub desk: Arc<Desk>,
    pub version: i64,
    pub model: Arc<dyn Model>,
    /// Answers may come after `execute` has returned.
    pub may_detach: bool,
    /// Each request is executed alone, so that an instance may have several.
    pub is_pipelined: bool,
}

/// The instance a thread is for. `index` is its place in [`Line`].
pub(crate) struct Seat {
    pub index: usize,
    pub spec: InstanceSpec,
}

/// Runs on the thread of one instance: makes the instance, tells the outcome to `ready`, and executes
/// batches until the line is closed and empty.
pub(crate) fn run(shared: &Shared, seat: Seat, ready: mpsc::Sender<Result<()>>) {
    let _end = EndOfThread(&shared.line);
    match make(shared, &seat) {
        Ok(instance) => {
            // The starter waits for every thread, so this send cannot fail in a way that matters.
            let _ = ready.send(Ok(()));
            // The starter waits until no thread can tell anything any more.
            drop(ready);
            let pace = Pace::new(Instant::now());
            Worker { shared, seat, instance, pace, has_panicked: false }.serve();
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
    seat: Seat,
    instance: Box<dyn ModelInstance>,
    pace: Pace,
    has_panicked: bool,
}

impl Worker<'_> {
    fn serve(mut self) {
        let mut done = 0;
        loop {
            let depth = self.depth();
            match self.shared.line.pull(self.seat.index, depth, done) {
                Pulled::Batch(tickets) if depth > 1 => done = self.execute_each(tickets),
                Pulled::Batch(tickets) => done = self.execute(tickets),
                Pulled::Dropped(dropped) => {
                    done = dropped.len();
                    self.shared.desk.answer_dropped(dropped);
                }
                Pulled::Renew(reason) => {
                    done = 0;
                    let Some(worker) = self.renew(reason) else { return };
                    self = worker;
                }
                Pulled::Closed => {
                    // What its end looks like to itself is no alarm.
                    self.shared.line.begin_instance(self.seat.index);
                    return discard(self.instance);
                }
            }
        }
    }

    /// Executes one batch and answers it, but for what the backend took out to answer it elsewhere.
    /// Returns how many requests are finished with. After a panic the instance counts as broken.
    fn execute(&mut self, tickets: Vec<Ticket>) -> usize {
        let Shared { line, desk, version, .. } = self.shared;
        let (count, items) = (tickets.len(), tickets.iter().map(Queued::item_count).sum());
        let jobs = tickets.into_iter().map(|t| desk.take(t)).collect();
        let mut batch = Batch::new(desk.model_name.clone(), *version, jobs);
        let execution = self.shared.may_detach.then(|| {
            let execution = Arc::new(Execution::new(line.clone(), desk.clone(), items));
            batch.observe(execution.clone());
            execution
        });
        // The batch stays whole whatever the backend was doing: its answers are set one by one.
        let result = catch_unwind(AssertUnwindSafe(|| self.instance.execute(&mut batch)));
        if let Err(panic) = &result {
            batch.fail_all(&self.note_panic(&**panic));
        }
        let detached = desk.answer_batch(batch, execution.as_deref());
        // Without an execution nobody says when a detached request has ended.
        count - if execution.is_some() { detached } else { 0 }
    }

    /// How many requests it takes at once to execute each alone; 1 where requests are joined instead.
    fn depth(&self) -> usize {
        match self.shared.is_pipelined {
            true => self.instance.pipeline_depth().max(1),
            false => 1,
        }
    }

    /// Executes requests one by one, each answered when it is done, while the instance has them all.
    fn execute_each(&mut self, tickets: Vec<Ticket>) -> usize {
        let Shared { line, desk, version, .. } = self.shared;
        let count = tickets.len();
        if count < 2 {
            return self.execute(tickets);
        }
        // What the instance loses is answered here all the same: the ways back never leave this thread.
        let mut open = OpenRequests::default();
        let jobs = tickets.into_iter().map(|ticket| open.enter(desk.take(ticket)));
        let batch = |(number, job)| {
            Batch::new(desk.model_name.clone(), *version, vec![job]).numbered(number)
        };
        let batches = jobs.enumerate().map(batch).collect();
        let result = catch_unwind(AssertUnwindSafe(|| {
            self.instance.execute_many(batches, &mut |batch| open.answer(desk, batch));
        }));
        let error = match result {
            Ok(()) => desk.unanswered(),
            Err(panic) => self.note_panic(&*panic),
        };
        let not_begun = open.take_not_begun();
        open.fail(desk, &error);
        count - line.put_back(not_begun, desk)
    }

    fn note_panic(&mut self, panic: &(dyn Any + Send)) -> Error {
        self.has_panicked = true;
        let Seat { index, spec } = &self.seat;
        let (model, instance, reason) = (&self.shared.desk.model_name, &spec.name, reason(panic));
        log::error!("instance {instance} of model '{model}' panicked: {reason}");
        let error = Error::internal(format!("instance '{instance}' panicked: {reason}"));
        self.shared.line.break_current_instance(*index, error);
        Error::internal(format!(
            "instance '{instance}' of model '{model}' failed unexpectedly while executing"
        ))
    }

    /// Throws the instance away and makes it anew, however often it takes. `None`: the line was closed
    /// and nothing is left to be done.
    fn renew(mut self, mut reason: Error) -> Option<Self> {
        let Self { shared, ref seat, .. } = self;
        discard(self.instance);
        // Panics come no faster than requests do: there is no need to slow them down.
        let mut wait = match self.has_panicked {
            true => Duration::ZERO,
            false => self.pace.after_death(Instant::now()),
        };
        let mut is_given_up = false;
        loop {
            if wait >= PATIENCE {
                give_up(shared, seat, &reason);
                is_given_up = true;
            }
            if shared.line.is_closed_within(wait) && (is_given_up || !shared.line.has_queued()) {
                return None;
            }
            match make(shared, seat) {
                Ok(instance) => {
                    self.pace.made(Instant::now());
                    let model = &shared.desk.model_name;
                    log::info!("instance {} of model '{model}' was made anew", seat.spec.name);
                    return Some(Self { instance, has_panicked: false, ..self });
                }
                Err(error) => reason = error,
            }
            log::error!("cannot make instance {} anew: {reason}", seat.spec.name);
            give_up(shared, seat, &reason);
            is_given_up = true;
            wait = self.pace.after_failure();
        }
    }
}

/// Requests no longer wait for this instance; those that wait for no other are answered.
fn give_up(shared: &Shared, seat: &Seat, reason: &Error) {
    let stranded = shared.line.give_up_instance(seat.index, reason);
    let count = stranded.len();
    shared.desk.answer_outage(stranded, reason);
    shared.line.settle(count);
}

/// Makes an instance with an alarm of its own.
fn make(shared: &Shared, seat: &Seat) -> Result<Box<dyn ModelInstance>> {
    let Seat { index, ref spec } = *seat;
    let model = &shared.desk.model_name;
    let generation = shared.line.begin_instance(index);
    let alarm = new_alarm(&shared.line, model.clone(), seat, generation);
    let spec = InstanceSpec { alarm, ..spec.clone() };
    let instance = catch_unwind(AssertUnwindSafe(|| shared.model.new_instance(&spec)));
    let instance = instance.unwrap_or_else(|panic| {
        let (name, reason) = (&spec.name, reason(&*panic));
        Err(Error::internal(format!(
            "making instance '{name}' of model '{model}' panicked: {reason}"
        )))
    })?;
    shared.line.instance_made(index);
    Ok(instance)
}

fn new_alarm(line: &Arc<Line>, model: Arc<str>, seat: &Seat, generation: u64) -> InstanceAlarm {
    // Weak: a backend may keep the alarm as long as it likes.
    let (line, index, name) = (Arc::downgrade(line), seat.index, seat.spec.name.clone());
    InstanceAlarm::new(move |reason| {
        let Some(line) = line.upgrade() else { return };
        let text = format!("instance {name} of model '{model}' stopped working: {reason}");
        if line.break_instance(index, generation, reason) {
            log::error!("{text}");
        }
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

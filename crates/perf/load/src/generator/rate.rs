//! Request rates: requests leave on schedule, however slowly the server answers.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{
    sync::Notify,
    task::{AbortHandle, spawn_local},
};

use super::{
    closed_loop::sequence_job,
    progress::RequestFailure,
    request_sender::RequestSender,
    schedule::Schedule,
    sequence::Slot,
    shared::{DueTime, Job, send_failure},
    timer::Timer,
    worker::Worker,
};

/// A request that leaves later than this after its time counts as delayed, as in perf_analyzer.
const TOLERANCE: Duration = Duration::from_millis(1);

/// The rate modes of one worker. A dispatcher waits for the next moment of the schedule. A pool of senders, each a task with a
/// connection and one request at a time, grows to the largest number needed at once.
pub struct Rate {
    worker: Rc<Worker>,
    senders: RefCell<SenderPool>,
    slots: RefCell<Slots>,
    /// A sender or a sequence is free again.
    freed: Notify,
    busy: Cell<usize>,
    failed: Cell<bool>,
    dispatcher: RefCell<Option<AbortHandle>>,
    turn: Cell<usize>,
}

#[derive(Default)]
struct SenderPool {
    all: Vec<Rc<SenderTask>>,
    /// The sender that became free last is used next, so that connections are few and warm.
    free: Vec<Rc<SenderTask>>,
}

struct SenderTask {
    index: usize,
    task: Cell<Option<Task>>,
    wake: Notify,
}

#[derive(Clone, Copy)]
struct Task {
    job: Job,
    /// The sequence slot to set free afterwards.
    slot: Option<usize>,
}

/// Sequences of the rate modes.
struct Slots {
    all: Vec<Slot>,
    free: VecDeque<usize>,
}

impl Rate {
    pub fn new(worker: Rc<Worker>) -> Rc<Self> {
        let slots = Slots {
            all: vec![Slot::default(); worker.settings.slots],
            free: (0..worker.settings.slots).collect(),
        };
        Rc::new(Self {
            worker,
            senders: RefCell::default(),
            slots: RefCell::new(slots),
            freed: Notify::new(),
            busy: Cell::new(0),
            failed: Cell::new(false),
            dispatcher: RefCell::default(),
            turn: Cell::new(0),
        })
    }

    /// Begins after a pause.
    pub fn begin(self: &Rc<Self>, schedule: Schedule, start: Instant) {
        let dispatcher = spawn_local(self.clone().dispatch(schedule, start));
        *self.dispatcher.borrow_mut() = Some(dispatcher.abort_handle());
    }

    async fn dispatch(self: Rc<Self>, schedule: Schedule, start: Instant) {
        if let Err(failure) = self.send_on_schedule(schedule, start).await {
            self.worker.fail(0, failure);
        }
    }

    async fn send_on_schedule(
        self: &Rc<Self>,
        mut schedule: Schedule,
        start: Instant,
    ) -> Result<(), RequestFailure> {
        let mut timer = Timer::new().map_err(send_failure)?;
        while !self.failed.get() && self.worker.shared.progress.take() {
            let Some(due) = start.checked_add(schedule.next()) else { return Ok(()) };
            timer.sleep_until(due).await.map_err(send_failure)?;
            let (sender, slot) = self.free_sender().await;
            let delayed = Instant::now().saturating_duration_since(due) > TOLERANCE;
            self.give(&sender, slot, DueTime { at: Some(due), delayed });
        }
        Ok(())
    }

    /// Returns a sender and a slot. It takes both or none, so that the dispatcher can be ended while it waits.
    async fn free_sender(self: &Rc<Self>) -> (Rc<SenderTask>, Option<usize>) {
        loop {
            if self.has_sender() && self.has_slot() {
                return (self.take_sender(), self.take_slot());
            }
            self.freed.notified().await;
        }
    }

    fn has_sender(&self) -> bool {
        let senders = self.senders.borrow();
        !senders.free.is_empty() || senders.all.len() < self.worker.settings.contexts
    }

    fn take_sender(self: &Rc<Self>) -> Rc<SenderTask> {
        let senders = &mut *self.senders.borrow_mut();
        if let Some(sender) = senders.free.pop() {
            return sender;
        }
        let index = senders.all.len();
        let sender = Rc::new(SenderTask { index, task: Cell::new(None), wake: Notify::new() });
        senders.all.push(sender.clone());
        self.worker.spawn(self.clone().run_sender(sender.clone()));
        sender
    }

    fn has_slot(&self) -> bool {
        let settings = &self.worker.settings;
        settings.slots == 0 || settings.overlap || !self.slots.borrow().free.is_empty()
    }

    /// Takes a sequence slot: the one that has waited longest if sequences are serial, else any.
    fn take_slot(&self) -> Option<usize> {
        let settings = &self.worker.settings;
        if settings.slots == 0 {
            return None;
        }
        if settings.overlap {
            return Some(fastrand::usize(..settings.slots));
        }
        let free = &mut self.slots.borrow_mut().free;
        let position = if settings.serial { 0 } else { fastrand::usize(..free.len().max(1)) };
        free.remove(position)
    }

    fn give(&self, sender: &SenderTask, slot: Option<usize>, due: DueTime) {
        let job = match (slot, &self.worker.shared.sequences) {
            (Some(index), Some(sequences)) => {
                let slots = &mut *self.slots.borrow_mut();
                let step = slots.all.get_mut(index).map(|slot| sequences.next(slot));
                step.map_or_else(Job::default, |step| sequence_job(step, index))
            }
            _ => self.worker.plain_job(self.turn.replace(self.turn.get().wrapping_add(1))),
        };
        self.busy.set(self.busy.get() + 1);
        sender.task.set(Some(Task { job: Job { due, ..job }, slot }));
        sender.wake.notify_one();
    }

    async fn run_sender(self: Rc<Self>, sender: Rc<SenderTask>) {
        let mut request_sender = RequestSender::new(self.worker.clone());
        loop {
            if let Some(task) = sender.task.take() {
                let done = request_sender.perform(&task.job).await;
                self.release(task.slot);
                if let Err(failure) = done {
                    self.failed.set(true);
                    return self.worker.fail(sender.index, failure);
                }
                self.senders.borrow_mut().free.push(sender.clone());
            } else if self.worker.stopping.get() {
                return;
            } else {
                sender.wake.notified().await;
            }
        }
    }

    fn release(&self, slot: Option<usize>) {
        self.busy.set(self.busy.get() - 1);
        if let Some(slot) = slot.filter(|_| !self.worker.settings.overlap) {
            self.slots.borrow_mut().free.push_back(slot);
        }
        self.freed.notify_one();
    }

    /// Ends the schedule, waits for requests in flight, and ends open sequences.
    pub async fn pause(&self) {
        if let Some(dispatcher) = self.dispatcher.borrow_mut().take() {
            dispatcher.abort();
        }
        while self.busy.get() > 0 {
            self.freed.notified().await;
        }
        if !self.failed.get()
            && let Err(failure) = self.end_sequences().await
        {
            self.failed.set(true);
            self.worker.fail(0, failure);
        }
    }

    async fn end_sequences(&self) -> Result<(), RequestFailure> {
        let Some(sequences) = &self.worker.shared.sequences else { return Ok(()) };
        let mut request_sender = RequestSender::new(self.worker.clone());
        for index in 0..self.worker.settings.slots {
            let last = {
                let slots = &mut *self.slots.borrow_mut();
                slots.all.get_mut(index).and_then(|slot| sequences.finish(slot))
            };
            if let Some(last) = last {
                request_sender.perform(&sequence_job(last, index)).await?;
            }
        }
        Ok(())
    }

    /// Wakes the senders, so that they see that the worker stops.
    pub fn close(&self) {
        for sender in &self.senders.borrow().all {
            sender.wake.notify_one();
        }
    }
}

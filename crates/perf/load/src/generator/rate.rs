//! Request rates: requests that leave on schedule, whatever the server does.

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
    call::Line,
    closed_loop::sequence_job,
    progress::Trouble,
    schedule::Schedule,
    sequence::Slot,
    shared::{Due, Job, sending_trouble},
    timer::Timer,
    worker::Worker,
};

/// The real tool's: what leaves later than this after its time counts as delayed.
const TOLERANCE: Duration = Duration::from_millis(1);

/// The rate modes of one worker: a dispatcher that waits for the next moment of the schedule, and seats, each a
/// task with a connection, that carry one request at a time. There are as many seats as were ever needed at once.
pub struct Rate {
    worker: Rc<Worker>,
    seats: RefCell<Seats>,
    slots: RefCell<Slots>,
    /// A seat or a sequence is free again.
    freed: Notify,
    busy: Cell<usize>,
    failed: Cell<bool>,
    dispatcher: RefCell<Option<AbortHandle>>,
    turn: Cell<usize>,
}

#[derive(Default)]
struct Seats {
    all: Vec<Rc<Seat>>,
    /// The last one to become free is the next one used: few connections, and warm ones.
    free: Vec<Rc<Seat>>,
}

struct Seat {
    index: usize,
    task: Cell<Option<Task>>,
    wake: Notify,
}

#[derive(Clone, Copy)]
struct Task {
    job: Job,
    /// The sequence to set free afterwards.
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
            all: vec![Slot::default(); worker.place.slots],
            free: (0..worker.place.slots).collect(),
        };
        Rc::new(Self {
            worker,
            seats: RefCell::default(),
            slots: RefCell::new(slots),
            freed: Notify::new(),
            busy: Cell::new(0),
            failed: Cell::new(false),
            dispatcher: RefCell::default(),
            turn: Cell::new(0),
        })
    }

    /// After a pause.
    pub fn begin(self: &Rc<Self>, schedule: Schedule, start: Instant) {
        let dispatcher = spawn_local(self.clone().dispatch(schedule, start));
        *self.dispatcher.borrow_mut() = Some(dispatcher.abort_handle());
    }

    async fn dispatch(self: Rc<Self>, schedule: Schedule, start: Instant) {
        if let Err(trouble) = self.send_on_schedule(schedule, start).await {
            self.worker.fail(0, trouble);
        }
    }

    async fn send_on_schedule(
        self: &Rc<Self>,
        mut schedule: Schedule,
        start: Instant,
    ) -> Result<(), Trouble> {
        let mut timer = Timer::new().map_err(sending_trouble)?;
        while !self.failed.get() && self.worker.shared.progress.take() {
            let Some(due) = start.checked_add(schedule.next()) else { return Ok(()) };
            timer.sleep_until(due).await.map_err(sending_trouble)?;
            let (seat, slot) = self.free_seat().await;
            let delayed = Instant::now().saturating_duration_since(due) > TOLERANCE;
            self.give(&seat, slot, Due { at: Some(due), delayed });
        }
        Ok(())
    }

    /// Both or none, so that the dispatcher can be ended while it waits.
    async fn free_seat(self: &Rc<Self>) -> (Rc<Seat>, Option<usize>) {
        loop {
            if self.has_seat() && self.has_slot() {
                return (self.take_seat(), self.take_slot());
            }
            self.freed.notified().await;
        }
    }

    fn has_seat(&self) -> bool {
        let seats = self.seats.borrow();
        !seats.free.is_empty() || seats.all.len() < self.worker.place.contexts
    }

    fn take_seat(self: &Rc<Self>) -> Rc<Seat> {
        let seats = &mut *self.seats.borrow_mut();
        if let Some(seat) = seats.free.pop() {
            return seat;
        }
        let index = seats.all.len();
        let seat = Rc::new(Seat { index, task: Cell::new(None), wake: Notify::new() });
        seats.all.push(seat.clone());
        self.worker.spawn(self.clone().sit(seat.clone()));
        seat
    }

    fn has_slot(&self) -> bool {
        let place = &self.worker.place;
        place.slots == 0 || place.overlap || !self.slots.borrow().free.is_empty()
    }

    /// The sequence whose turn it is: the one that has waited longest if sequences are serial, else any.
    fn take_slot(&self) -> Option<usize> {
        let place = &self.worker.place;
        if place.slots == 0 {
            return None;
        }
        if place.overlap {
            return Some(fastrand::usize(..place.slots));
        }
        let free = &mut self.slots.borrow_mut().free;
        let position = if place.serial { 0 } else { fastrand::usize(..free.len().max(1)) };
        free.remove(position)
    }

    fn give(&self, seat: &Seat, slot: Option<usize>, due: Due) {
        let job = match (slot, &self.worker.shared.sequences) {
            (Some(index), Some(sequences)) => {
                let slots = &mut *self.slots.borrow_mut();
                let step = slots.all.get_mut(index).map(|slot| sequences.next(slot));
                step.map_or_else(Job::default, |step| sequence_job(step, index))
            }
            _ => self.worker.plain_job(self.turn.replace(self.turn.get().wrapping_add(1))),
        };
        self.busy.set(self.busy.get() + 1);
        seat.task.set(Some(Task { job: Job { due, ..job }, slot }));
        seat.wake.notify_one();
    }

    async fn sit(self: Rc<Self>, seat: Rc<Seat>) {
        let mut line = Line::new(self.worker.clone());
        loop {
            if let Some(task) = seat.task.take() {
                let done = line.perform(&task.job).await;
                self.release(task.slot);
                if let Err(trouble) = done {
                    self.failed.set(true);
                    return self.worker.fail(seat.index, trouble);
                }
                self.seats.borrow_mut().free.push(seat.clone());
            } else if self.worker.stopping.get() {
                return;
            } else {
                seat.wake.notified().await;
            }
        }
    }

    fn release(&self, slot: Option<usize>) {
        self.busy.set(self.busy.get() - 1);
        if let Some(slot) = slot.filter(|_| !self.worker.place.overlap) {
            self.slots.borrow_mut().free.push_back(slot);
        }
        self.freed.notify_one();
    }

    /// Ends the schedule, waits for what is under way, ends the sequences that are open.
    pub async fn pause(&self) {
        if let Some(dispatcher) = self.dispatcher.borrow_mut().take() {
            dispatcher.abort();
        }
        while self.busy.get() > 0 {
            self.freed.notified().await;
        }
        if !self.failed.get()
            && let Err(trouble) = self.end_sequences().await
        {
            self.failed.set(true);
            self.worker.fail(0, trouble);
        }
    }

    async fn end_sequences(&self) -> Result<(), Trouble> {
        let Some(sequences) = &self.worker.shared.sequences else { return Ok(()) };
        let mut line = Line::new(self.worker.clone());
        for index in 0..self.worker.place.slots {
            let last = {
                let slots = &mut *self.slots.borrow_mut();
                slots.all.get_mut(index).and_then(|slot| sequences.finish(slot))
            };
            if let Some(last) = last {
                line.perform(&sequence_job(last, index)).await?;
            }
        }
        Ok(())
    }

    /// Lets the seats see that the worker stops.
    pub fn close(&self) {
        for seat in &self.seats.borrow().all {
            seat.wake.notify_one();
        }
    }
}

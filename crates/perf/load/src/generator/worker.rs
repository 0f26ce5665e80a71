//! A worker: one thread, its own runtime and connections, any number of requests under way.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use galatea_client::Connector;
use galatea_perf_types::settings::Range;
use tokio::{
    runtime::{Builder, Runtime},
    sync::{
        Notify,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::{JoinHandle, LocalSet, spawn_local},
    time::timeout,
};

use super::{
    closed_loop,
    idle::IdleClock,
    ledger::Ledger,
    periodic,
    progress::Trouble,
    rate::Rate,
    schedule::{Schedule, Share},
    shared::{Job, Shared, sending_trouble},
    stream::Streams,
};

/// How long requests under way may take when the load is to stop. Longer than any sane request, so that none is
/// cut off, and not forever, so that a server that hangs does not hang the tool.
pub const GRACE: Duration = Duration::from_secs(60);

/// The other side of a worker: what the rest of the program sees of it.
pub struct Handle {
    pub ledger: Arc<Ledger>,
    pub idle: Arc<IdleClock>,
    commands: UnboundedSender<Command>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What differs from worker to worker.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub share: Share,
    /// gRPC streams of this worker, outside of sequences.
    pub streams: usize,
    /// Contexts in the rate modes: with synchronous calls, or as many as file descriptors allow.
    pub contexts: usize,
    /// Sequence slots in the rate modes.
    pub slots: usize,
    /// Whether several requests of a sequence may be under way. Only a stream keeps them in order: over separate
    /// calls the second may arrive first, and fails a run that asked for nothing wrong.
    pub overlap: bool,
    pub serial: bool,
}

pub enum Work {
    /// Closed loops of this worker. `stride`: workers that take part, which step through the data together.
    Contexts {
        count: usize,
        stride: u64,
    },
    Schedule {
        schedule: Schedule,
        start: Instant,
    },
    Periodic {
        range: Range<u64>,
        period: u64,
    },
}

enum Command {
    Begin(Work),
    /// Ends the schedule and open sequences, and answers when nothing is under way.
    Pause(mpsc::Sender<()>),
    /// Answers whether everything has ended in time.
    Stop(mpsc::Sender<bool>),
}

/// The thread's side.
pub struct Worker {
    pub shared: Arc<Shared>,
    pub ledger: Arc<Ledger>,
    pub connector: Connector,
    pub streams: Streams,
    pub place: Place,
    /// Closed loops that are to run; those above rest.
    pub contexts: Cell<usize>,
    pub stopping: Cell<bool>,
    /// Wakes contexts that rest.
    pub changed: Notify,
    next_step: Cell<u64>,
    stride: Cell<u64>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

impl Handle {
    pub fn spawn(shared: Arc<Shared>, place: Place) -> io::Result<Self> {
        let (ledger, idle) = (Arc::<Ledger>::default(), Arc::new(IdleClock::new()));
        let (commands, receiver) = unbounded_channel();
        let runtime = runtime(&idle)?;
        let book = ledger.clone();
        let thread = thread::Builder::new()
            .name(format!("load-{}", place.share.index))
            .spawn(move || run(runtime, shared, book, place, receiver))?;
        Ok(Self { ledger, idle, commands, thread: Some(thread) })
    }

    pub fn begin(&self, work: Work) {
        self.send(Command::Begin(work));
    }

    /// Answers when nothing is under way. The sender is dropped if the worker is gone.
    pub fn pause(&self) -> mpsc::Receiver<()> {
        let (sender, receiver) = mpsc::channel();
        self.send(Command::Pause(sender));
        receiver
    }

    pub fn stop(&self) -> mpsc::Receiver<bool> {
        let (sender, receiver) = mpsc::channel();
        self.send(Command::Stop(sender));
        receiver
    }

    /// Whether the thread ended in an orderly way.
    pub fn join(&mut self) -> bool {
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }

    /// The thread is gone though nobody stopped it.
    pub fn is_dead(&self) -> bool {
        self.thread.as_ref().is_some_and(thread::JoinHandle::is_finished)
    }

    fn send(&self, command: Command) {
        // A worker that is gone drops the answer's sender with the command.
        let _ = self.commands.send(command);
    }
}

/// The hooks see every wait of the thread, whatever it waits for.
fn runtime(idle: &Arc<IdleClock>) -> io::Result<Runtime> {
    let (park, unpark) = (idle.clone(), idle.clone());
    Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || park.park())
        .on_thread_unpark(move || unpark.unpark())
        .build()
}

fn run(
    runtime: Runtime,
    shared: Arc<Shared>,
    ledger: Arc<Ledger>,
    place: Place,
    commands: UnboundedReceiver<Command>,
) {
    let tasks = LocalSet::new();
    let connector = match Connector::new(shared.target.clone()) {
        Ok(connector) => connector,
        Err(error) => return shared.progress.fail(place.share.index, sending_trouble(error)),
    };
    let worker = Rc::new(Worker {
        shared,
        ledger,
        connector,
        streams: Streams::default(),
        place,
        contexts: Cell::new(0),
        stopping: Cell::new(false),
        changed: Notify::new(),
        next_step: Cell::new(place.share.index),
        stride: Cell::new(place.share.of),
        tasks: RefCell::default(),
    });
    tasks.block_on(&runtime, worker.serve(commands));
}

impl Worker {
    async fn serve(self: Rc<Self>, mut commands: UnboundedReceiver<Command>) {
        let rate = Rate::new(self.clone());
        while let Some(command) = commands.recv().await {
            match command {
                Command::Begin(work) => self.begin(work, &rate),
                Command::Pause(reply) => {
                    // Whoever asked may have given up waiting.
                    let _ = timeout(GRACE, rate.pause()).await.map(|()| reply.send(()));
                }
                Command::Stop(reply) => {
                    let ended = timeout(GRACE, self.end(&rate)).await.is_ok();
                    let _ = reply.send(ended);
                    return;
                }
            }
        }
    }

    fn begin(self: &Rc<Self>, work: Work, rate: &Rc<Rate>) {
        match work {
            Work::Contexts { count, stride } => {
                self.stride.set(stride.max(1));
                self.contexts.set(count);
                let running = self.tasks.borrow().len();
                for index in running..count {
                    self.spawn(closed_loop::run(self.clone(), index));
                }
                self.changed.notify_waiters();
            }
            Work::Schedule { schedule, start } => rate.begin(schedule, start),
            Work::Periodic { range, period } => periodic::begin(self, range, period),
        }
    }

    async fn end(&self, rate: &Rc<Rate>) {
        self.stopping.set(true);
        self.changed.notify_waiters();
        rate.pause().await;
        rate.close();
        loop {
            // Tasks may add tasks until they have all seen the end.
            let Some(task) = self.tasks.borrow_mut().pop() else { break };
            // One that panicked has ended, too.
            let _ = task.await;
        }
        self.streams.finish().await;
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(spawn_local(task));
    }

    /// The next request outside of sequences. All workers go round the steps of the first stream together, each
    /// taking every so many-th.
    pub fn plain_job(&self, line: usize) -> Job {
        let turn = self.next_step.replace(self.next_step.get() + self.stride.get());
        let first = turn.wrapping_mul(self.shared.calls.batch_size);
        let step = (first % self.shared.requests.plain_steps()) as usize;
        Job { step, line: line % self.place.streams.max(1), ..Job::default() }
    }

    /// `index`: of the context within this worker.
    pub fn fail(&self, index: usize, trouble: Trouble) {
        let thread = index as u64 * self.place.share.of + self.place.share.index;
        self.shared.progress.fail(thread, trouble);
    }
}

//! The thread of a worker: its runtime, its commands, and the handle for the rest of the program.

use std::{
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
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::LocalSet,
    time::timeout,
};

use super::{
    closed_loop,
    idle::IdleClock,
    periodic,
    rate::Rate,
    records::WorkerRecords,
    schedule::Schedule,
    shared::{Shared, send_failure},
    worker::{Worker, WorkerSettings},
};

/// Longest time for requests in flight when the load stops. It is longer than any sane request, so that none is cut off, and
/// finite, so that a server that hangs does not hang the tool.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A handle on a worker for the rest of the program.
pub struct Handle {
    pub records: Arc<WorkerRecords>,
    pub idle: Arc<IdleClock>,
    commands: UnboundedSender<Command>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A command to a worker.
pub enum Work {
    /// Runs closed loops. `stride`: number of workers that step through the data together.
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
    /// Ends the schedule and open sequences, and replies once nothing is in flight.
    Pause(mpsc::Sender<()>),
    /// Stops the worker. Replies true if everything has ended in time.
    Stop(mpsc::Sender<bool>),
}

impl Handle {
    pub fn spawn(shared: Arc<Shared>, settings: WorkerSettings) -> io::Result<Self> {
        let (records, idle) = (Arc::<WorkerRecords>::default(), Arc::new(IdleClock::new()));
        let (commands, receiver) = unbounded_channel();
        let runtime = runtime(&idle)?;
        let worker_records = records.clone();
        let thread = thread::Builder::new()
            .name(format!("load-{}", settings.partition.index))
            .spawn(move || run(runtime, shared, worker_records, settings, receiver))?;
        Ok(Self { records, idle, commands, thread: Some(thread) })
    }

    pub fn begin(&self, work: Work) {
        self.send(Command::Begin(work));
    }

    /// Pauses the worker, which replies once nothing is in flight. The sender is dropped if it has ended.
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

    /// Returns true if the thread ended without a panic.
    pub fn join(&mut self) -> bool {
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }

    /// Returns true if the thread has ended, although nobody stopped it.
    pub fn is_dead(&self) -> bool {
        self.thread.as_ref().is_some_and(thread::JoinHandle::is_finished)
    }

    fn send(&self, command: Command) {
        // A worker that has ended drops the reply's sender with the command.
        let _ = self.commands.send(command);
    }
}

/// Makes a runtime whose hooks see every time the thread parks.
fn runtime(idle: &Arc<IdleClock>) -> io::Result<Runtime> {
    let (park, unpark) = (idle.clone(), idle.clone());
    Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || park.park(Instant::now()))
        .on_thread_unpark(move || unpark.unpark(Instant::now()))
        .build()
}

fn run(
    runtime: Runtime,
    shared: Arc<Shared>,
    records: Arc<WorkerRecords>,
    settings: WorkerSettings,
    commands: UnboundedReceiver<Command>,
) {
    let tasks = LocalSet::new();
    let connector = match Connector::new(shared.target.clone()) {
        Ok(connector) => connector,
        Err(error) => return shared.progress.fail(settings.partition.index, send_failure(error)),
    };
    let worker = Worker::new(shared, records, connector, settings);
    tasks.block_on(&runtime, serve(worker, commands));
}

async fn serve(worker: Rc<Worker>, mut commands: UnboundedReceiver<Command>) {
    let rate = Rate::new(worker.clone());
    while let Some(command) = commands.recv().await {
        match command {
            Command::Begin(work) => begin(&worker, work, &rate),
            Command::Pause(reply) => {
                // The caller may have given up waiting.
                let _ = timeout(STOP_TIMEOUT, rate.pause()).await.map(|()| reply.send(()));
            }
            Command::Stop(reply) => {
                let ended = timeout(STOP_TIMEOUT, end(&worker, &rate)).await.is_ok();
                let _ = reply.send(ended);
                return;
            }
        }
    }
}

fn begin(worker: &Rc<Worker>, work: Work, rate: &Rc<Rate>) {
    match work {
        Work::Contexts { count, stride } => {
            worker.set_contexts(count, stride);
            let running = worker.task_count();
            for index in running..count {
                worker.spawn(closed_loop::run(worker.clone(), index));
            }
            worker.changed.notify_waiters();
        }
        Work::Schedule { schedule, start } => rate.begin(schedule, start),
        Work::Periodic { range, period } => periodic::begin(worker, range, period),
    }
}

async fn end(worker: &Worker, rate: &Rc<Rate>) {
    worker.stopping.set(true);
    worker.changed.notify_waiters();
    rate.pause().await;
    rate.close();
    worker.join().await;
}

//! A worker: one thread, its own connections, any number of requests in flight.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use galatea_client::Connector;
use tokio::{
    sync::Notify,
    task::{JoinHandle, spawn_local},
};

use super::{
    progress::RequestFailure,
    records::WorkerRecords,
    schedule::Partition,
    shared::{Job, Shared},
    stream::{Stream, Streams},
};

/// The settings that differ between workers.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    pub partition: Partition,
    /// gRPC streams of this worker, outside of sequences.
    pub streams: usize,
    /// Contexts in the rate modes: with synchronous calls, or as many as file descriptors allow.
    pub contexts: usize,
    /// Sequence slots in the rate modes.
    pub slots: usize,
    /// Several requests of a sequence may be in flight. Only a stream keeps them in order: over separate calls the second may
    /// arrive first, and fails a correct run.
    pub overlap: bool,
    pub serial: bool,
}

/// The state of a worker, used by every task of its thread.
pub struct Worker {
    pub shared: Arc<Shared>,
    pub records: Arc<WorkerRecords>,
    pub connector: Connector,
    pub streams: Streams,
    pub settings: WorkerSettings,
    /// Number of closed loops that run; those above are idle.
    pub contexts: Cell<usize>,
    pub stopping: Cell<bool>,
    /// Wakes idle contexts.
    pub changed: Notify,
    next_step: Cell<u64>,
    stride: Cell<u64>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

impl Worker {
    /// Makes a worker without tasks.
    pub fn new(
        shared: Arc<Shared>,
        records: Arc<WorkerRecords>,
        connector: Connector,
        settings: WorkerSettings,
    ) -> Rc<Self> {
        Rc::new(Self {
            shared,
            records,
            connector,
            streams: Streams::default(),
            settings,
            contexts: Cell::new(0),
            stopping: Cell::new(false),
            changed: Notify::new(),
            next_step: Cell::new(settings.partition.index),
            stride: Cell::new(settings.partition.of),
            tasks: RefCell::default(),
        })
    }

    /// Sets the number of closed loops that run, and the number of workers that step through the data together.
    pub fn set_contexts(&self, count: usize, stride: u64) {
        self.stride.set(stride.max(1));
        self.contexts.set(count);
    }

    /// Returns the number of tasks that have been started.
    pub fn task_count(&self) -> usize {
        self.tasks.borrow().len()
    }

    /// Waits for every task, with those added meanwhile, and closes the streams.
    pub async fn join(&self) {
        loop {
            // Tasks may add tasks until all have seen `stopping`.
            let Some(task) = self.tasks.borrow_mut().pop() else { break };
            // A task that panicked has ended too.
            let _ = task.await;
        }
        self.streams.finish().await;
    }

    /// Returns the stream with that index, opened at its first use.
    pub async fn stream(&self, index: usize) -> Result<Rc<Stream>, RequestFailure> {
        self.streams.get(&self.shared, &self.connector, index).await
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.borrow_mut().push(spawn_local(task));
    }

    /// Returns the next request outside of sequences. All workers repeat the steps of the first stream together: of `stride`
    /// workers, each takes every `stride`-th.
    pub fn plain_job(&self, grpc_stream: usize) -> Job {
        let turn = self.next_step.replace(self.next_step.get() + self.stride.get());
        let first = turn.wrapping_mul(self.shared.calls.batch_size);
        let step = (first % self.shared.requests.plain_steps()) as usize;
        Job { step, grpc_stream: grpc_stream % self.settings.streams.max(1), ..Job::default() }
    }

    /// Reports a failure. `index`: that of the context within this worker.
    pub fn fail(&self, index: usize, failure: RequestFailure) {
        let thread = index as u64 * self.settings.partition.of + self.settings.partition.index;
        self.shared.progress.fail(thread, failure);
    }
}

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{Builder, JoinHandle},
    time::Instant,
};

use galatea_backend::{InstanceSpec, Job, Model};
use galatea_config::{ModelConfig, Scheduling};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, InferRequest, Refused, Responder, Result};

use crate::{
    completion::CompletionQueue,
    desk::Desk,
    instance::{self, Seat, Shared},
    line::Line,
    ticket::Ticket,
};

/// What takes the requests of one model version.
pub trait Scheduler: Send + Sync {
    /// Takes a request. What became of it comes through `responder`, and is counted.
    ///
    /// # Errors
    /// [`Refused`] when the request is not taken: the scheduler is closed, its queue is full, or nothing works
    /// that could execute it. That is counted as a failure here.
    fn submit(&self, request: InferRequest, responder: Responder) -> Result<(), Refused>;

    /// Requests queued, executing and streaming.
    fn in_flight(&self) -> usize;

    /// Waits until nothing is in flight, while requests are still accepted; false when that is not so by
    /// `deadline`.
    fn wait_until_idle(&self, deadline: Instant) -> bool;

    /// Refuses new requests from now on (S-24). What is queued is still answered.
    fn close(&self);

    /// Closes, and waits until everything is answered and every thread has ended; false when that is not
    /// so by `deadline`.
    fn drain(&self, deadline: Instant) -> bool;

    /// Whether a request would be executed: something is there that works.
    fn is_ready(&self) -> bool;

    /// Whether the model has a say of its own in its readiness; most have not.
    fn has_readiness_check(&self) -> bool {
        false
    }

    /// The model's own say, asked only when it has one. May block as long as the model takes to answer.
    fn model_is_ready(&self) -> bool {
        true
    }
}

/// What a queue and its instances are made for.
pub struct SchedulerSpec {
    pub config: Arc<ModelConfig>,
    pub version: i64,
    pub model: Arc<dyn Model>,
    /// One thread is started for each.
    pub instances: Vec<InstanceSpec>,
    pub statistics: Arc<ModelStatistics>,
    /// Nothing is executed until this many requests are queued (S-23); 0 turns it off.
    pub hold_until_queued: usize,
}

/// The queue of one model version and the instance threads that pull from it.
///
/// Dropped, it closes: what is queued is still answered, by threads that then end on their own.
pub struct QueueScheduler {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl QueueScheduler {
    /// Starts one thread per instance and makes each instance on its own thread, all at the same time.
    ///
    /// Blocks until all are ready. The first error is returned when all threads have ended again.
    pub fn start(spec: SchedulerSpec) -> Result<Arc<QueueScheduler>> {
        check(&spec)?;
        let line = Line::new(&spec.config, spec.instances.len(), spec.hold_until_queued);
        let desk = Desk {
            model_name: spec.config.name().clone(),
            statistics: spec.statistics,
            completion: preserves_ordering(&spec.config).then(Arc::<CompletionQueue>::default),
        };
        let may_detach = spec.config.is_decoupled() || spec.model.may_answer_later();
        let shared = Arc::new(Shared {
            line: Arc::new(line),
            desk: Arc::new(desk),
            version: spec.version,
            model: spec.model,
            may_detach,
            is_pipelined: !may_detach && matches!(spec.config.scheduling(), Scheduling::Direct),
        });
        let scheduler = QueueScheduler { shared, threads: Mutex::default() };
        scheduler.start_threads(spec.instances).inspect_err(|_| scheduler.stop())?;
        Ok(Arc::new(scheduler))
    }

    fn enter(&self, request: InferRequest, responder: Responder) -> Result<(), Refused> {
        let Shared { line, desk, .. } = &*self.shared;
        let job = Job { request, responder, queued_at: Instant::now() };
        // Counted up first: an instance may take the request before `enter` returns.
        desk.statistics.pending_up();
        match line.enter(Ticket { job, place: 0 }) {
            None => Ok(()),
            Some((ticket, refusal)) => {
                desk.statistics.pending_down();
                Err(desk.refuse(ticket, refusal))
            }
        }
    }

    fn start_threads(&self, instances: Vec<InstanceSpec>) -> Result<()> {
        let (ready, outcomes) = mpsc::channel();
        let count = instances.len();
        for (index, spec) in instances.into_iter().enumerate() {
            let (shared, ready) = (self.shared.clone(), ready.clone());
            let name = spec.name.clone();
            let thread = Builder::new().name(name.clone());
            let seat = Seat { index, spec };
            match thread.spawn(move || instance::run(&shared, seat, ready)) {
                Ok(thread) => self.lock_threads().push(thread),
                Err(e) => {
                    (index..count).for_each(|_| self.shared.line.thread_ended());
                    return Err(Error::internal(format!(
                        "cannot start the thread of instance '{name}': {e}"
                    )));
                }
            }
        }
        drop(ready);
        // Ends when every thread has told its outcome or is gone.
        outcomes.iter().collect()
    }

    fn stop(&self) {
        self.close();
        self.join();
    }

    fn join(&self) {
        for thread in std::mem::take(&mut *self.lock_threads()) {
            // Its panics are caught and told where they happen.
            let _ = thread.join();
        }
    }

    fn lock_threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheduler for QueueScheduler {
    fn submit(&self, request: InferRequest, responder: Responder) -> Result<(), Refused> {
        self.enter(request, responder)
    }

    fn in_flight(&self) -> usize {
        self.shared.line.in_flight()
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.shared.line.wait_until_idle(deadline)
    }

    fn close(&self) {
        self.shared.line.close();
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        let has_ended = self.shared.line.wait_for_end(deadline);
        if has_ended {
            self.join();
        }
        has_ended
    }

    fn is_ready(&self) -> bool {
        self.shared.line.has_working_instance()
    }

    fn has_readiness_check(&self) -> bool {
        self.shared.model.has_readiness_check()
    }

    fn model_is_ready(&self) -> bool {
        self.shared.model.is_ready()
    }
}

impl Drop for QueueScheduler {
    fn drop(&mut self) {
        self.close();
    }
}

fn check(spec: &SchedulerSpec) -> Result<()> {
    let config = &spec.config;
    let field = match config.scheduling() {
        Scheduling::Sequence => "sequence_batching",
        Scheduling::Ensemble(_) => "ensemble_scheduling",
        Scheduling::Direct | Scheduling::Dynamic(_) => {
            return match spec.instances.is_empty() {
                true => Err(Error::internal(format!("model '{}' has no instances", config.name()))),
                false => Ok(()),
            };
        }
    };
    Err(Error::unsupported(format!("{field} is not supported yet for model '{}'", config.name())))
}

fn preserves_ordering(config: &ModelConfig) -> bool {
    matches!(config.scheduling(), Scheduling::Dynamic(d) if d.preserves_ordering)
}

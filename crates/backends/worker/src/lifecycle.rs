//! The identity and the life cycle of a worker: its process, its end, and the alarm that reports the end.

use std::{
    fmt,
    os::fd::AsFd,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use galatea_backend::InstanceAlarm;
use galatea_types::Error;
use rustix::event::{PollFd, PollFlags};

use crate::process::{ExitReason, Process};

/// The model and instance that a worker runs, for log lines and errors.
#[derive(Clone, Debug)]
pub struct WorkerIdentity {
    /// Name of this kind of worker in errors, e.g. `Python worker`.
    pub role: &'static str,
    /// The name of the model.
    pub model: Arc<str>,
    /// Version of the model, for the fields of log lines.
    pub version: i64,
    /// Name of the instance. `None`: a worker that only completes a configuration.
    pub instance: Option<String>,
}

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model '{}'", self.model)?;
        self.instance.as_ref().map_or(Ok(()), |instance| write!(f, " (instance '{instance}')"))
    }
}

/// The life cycle of one worker.
pub struct Lifecycle {
    identity: WorkerIdentity,
    /// Set by the event thread, which starts it.
    process: OnceLock<Process>,
    alarm: InstanceAlarm,
    error: OnceLock<Error>,
    is_exit_expected: AtomicBool,
}

impl Lifecycle {
    /// Builds the life cycle of a worker whose exit is expected: while it starts, the error of starting it reports its end.
    pub(crate) fn new(identity: WorkerIdentity, alarm: InstanceAlarm) -> Self {
        Self {
            identity,
            process: OnceLock::new(),
            alarm,
            error: OnceLock::new(),
            is_exit_expected: AtomicBool::new(true),
        }
    }

    /// Returns the model and instance that it runs.
    pub fn identity(&self) -> &WorkerIdentity {
        &self.identity
    }

    pub(crate) fn set_process(&self, process: Process) {
        let _ = self.process.set(process);
    }

    /// Returns the process, or `None` if it has not been started.
    pub fn process(&self) -> Option<&Process> {
        self.process.get()
    }

    /// Kills the rest of the process and its group. Returns how the process ended.
    pub(crate) fn kill(&self) -> Option<ExitReason> {
        self.process.get().and_then(Process::end)
    }

    /// Waits until the process has ended. Returns false if it has not ended at `deadline`.
    pub(crate) fn wait_for_exit(&self, deadline: Instant) -> bool {
        let Some(process) = self.process.get() else { return true };
        let left = deadline.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        rustix::event::poll(&mut watched, left.try_into().ok().as_ref()).is_ok_and(|n| n > 0)
    }

    /// Kills the worker if it still runs. Returns the error for all open requests. `cause`: why it is killed. `None`: it
    /// exited by itself.
    pub(crate) fn mark_dead(&self, cause: Option<&str>) -> Error {
        let error = self.error.get_or_init(|| {
            let exit = self.kill().map_or_else(|| "ended".to_owned(), |exit| exit.to_string());
            let reason = cause.map_or(exit, |cause| format!("was stopped: {cause}"));
            let Self { identity, .. } = self;
            let text =
                format!("the {} of {identity} {reason}; it is being restarted", identity.role);
            let error = Error::unavailable(text);
            if !self.is_exit_expected() {
                log::error!("{error}");
            }
            // Before any request has its response: the scheduler must give the next one to another worker.
            self.raise_alarm(&error);
            error
        });
        error.clone()
    }

    /// Tells the scheduler that this worker has to be restarted, unless its exit is expected.
    pub(crate) fn raise_alarm(&self, error: &Error) {
        if !self.is_exit_expected() {
            self.alarm.raise(error.clone());
        }
    }

    /// Returns the error of the worker's end, if it is dead.
    pub(crate) fn error(&self) -> Option<&Error> {
        self.error.get()
    }

    /// Returns true if the worker has ended.
    pub fn is_dead(&self) -> bool {
        self.error.get().is_some()
    }

    /// Makes the worker's end expected: it is neither logged nor reported to the scheduler.
    pub(crate) fn expect_exit(&self) {
        self.is_exit_expected.store(true, Ordering::Release);
    }

    /// Makes the worker's end a failure from now on.
    pub(crate) fn expect_running(&self) {
        self.is_exit_expected.store(false, Ordering::Release);
    }

    fn is_exit_expected(&self) -> bool {
        self.is_exit_expected.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn lifecycle() -> (Lifecycle, Arc<AtomicUsize>) {
        let raised = Arc::new(AtomicUsize::new(0));
        let count = raised.clone();
        let alarm = InstanceAlarm::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let identity =
            WorkerIdentity { role: "Python worker", model: "m".into(), version: 1, instance: None };
        (Lifecycle::new(identity, alarm), raised)
    }

    #[test]
    fn the_first_cause_of_an_exit_is_kept() {
        let (lifecycle, raised) = lifecycle();
        lifecycle.expect_running();
        assert!(!lifecycle.is_dead());
        let text =
            "the Python worker of model 'm' was stopped: it sent nonsense; it is being restarted";
        assert_eq!(lifecycle.mark_dead(Some("it sent nonsense")).message(), text);
        assert_eq!(lifecycle.mark_dead(None).message(), text);
        assert_eq!(lifecycle.error().map(Error::message), Some(text));
        assert_eq!(raised.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_expected_exit_raises_no_alarm() {
        let (lifecycle, raised) = lifecycle();
        let error = lifecycle.mark_dead(None);
        lifecycle.raise_alarm(&error);
        assert_eq!(raised.load(Ordering::Relaxed), 0);
        assert!(lifecycle.is_dead());
    }
}

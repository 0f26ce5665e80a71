//! Finds workers that have work and make no progress, or are stopped: the server replaces them.
//!
//! The only cost on a request's path is the count of responses that its requests keep anyway. The event thread checks
//! regularly, and counts its own checks, not the clock's time: when server and worker are paused together, neither has lost
//! any.

use std::{fs, time::Duration};

/// A limit on a worker's action, with the setting that an operator changes it with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLimit {
    /// Longest time. `None`: no limit.
    pub limit: Option<Duration>,
    /// Name of the setting, for errors.
    pub setting: &'static str,
}

/// The state of a worker when the event thread checks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerSnapshot {
    /// Time since the last check, as far as this process has run.
    pub elapsed: Duration,
    /// True if requests are unanswered and no answer of the worker waits to be read.
    pub is_busy: bool,
    /// Changes with every response.
    pub progress: u64,
    /// Result of [`is_stopped`].
    pub is_stopped: bool,
    /// True if the model is being unloaded, and nobody waits for any of the requests.
    pub is_abandoned: bool,
    /// Bytes of memory that the worker's processes take. `None`: not measured.
    pub memory: Option<u64>,
}

/// Compares successive states of a worker with its limits.
#[derive(Debug)]
pub(crate) struct Watchdog {
    limits: WorkLimits,
    /// True if the worker was busy at the last check.
    was_busy: bool,
    progress: u64,
    without_progress: Duration,
    stopped: Duration,
}

/// The limits of a worker's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkLimits {
    /// Longest time that a worker may have requests without responding to any.
    pub execution: TimeLimit,
    /// The same limit once its model is being unloaded and nobody waits for the requests.
    pub abandoned: TimeLimit,
    /// Most bytes of memory for all its processes together. `None`: no limit.
    pub memory: Option<u64>,
    /// Name of the setting with the memory limit, for errors.
    pub memory_setting: &'static str,
}

/// Longest stop (SIGSTOP) of a process. After that the worker is not expected to continue.
pub(crate) const STOPPED_LIMIT: Duration = Duration::from_secs(5);

impl Watchdog {
    /// Builds a watchdog. Without limits, no worker is ever overdue.
    pub fn new(limits: WorkLimits) -> Self {
        let (without_progress, stopped) = (Duration::ZERO, Duration::ZERO);
        Self { limits, was_busy: false, progress: 0, without_progress, stopped }
    }

    pub fn is_on(&self) -> bool {
        self.limits.execution.limit.is_some() || self.limits.memory.is_some()
    }

    /// Checks the worker's state. Returns the reason if the worker must be replaced.
    pub fn look(&mut self, look: WorkerSnapshot) -> Option<ReplaceReason> {
        let WorkLimits { memory, memory_setting, .. } = self.limits;
        if let Some(limit) = memory.filter(|&limit| look.memory.is_some_and(|used| used > limit)) {
            return Some(ReplaceReason::Memory { limit, setting: memory_setting });
        }
        let has_moved = std::mem::replace(&mut self.progress, look.progress) != look.progress;
        // A request that came after the last check has not waited for all of that time.
        let was_busy = std::mem::replace(&mut self.was_busy, look.is_busy);
        self.without_progress = match was_busy && look.is_busy && !has_moved {
            true => self.without_progress + look.elapsed,
            false => Duration::ZERO,
        };
        self.stopped = match look.is_stopped {
            true => self.stopped + look.elapsed,
            false => Duration::ZERO,
        };
        let TimeLimit { limit, setting } = self.limits.abandoned;
        if let Some(limit) =
            limit.filter(|&limit| look.is_abandoned && self.without_progress >= limit)
        {
            return Some(ReplaceReason::Abandoned { limit, setting });
        }
        let TimeLimit { limit, setting } = self.limits.execution;
        let limit = limit?;
        if self.without_progress >= limit {
            return Some(ReplaceReason::Silent { limit, setting });
        }
        (self.stopped >= limit.min(STOPPED_LIMIT)).then_some(ReplaceReason::Stopped { setting })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReplaceReason {
    #[error("it did not respond within {} s ({setting})", limit.as_secs_f64())]
    Silent { limit: Duration, setting: &'static str },
    #[error("its process is stopped; {setting}=0 lets it wait")]
    Stopped { setting: &'static str },
    #[error(
        "its model is being unloaded, and it did not end an execution that nobody waits for within {} s ({setting})",
        limit.as_secs_f64()
    )]
    Abandoned { limit: Duration, setting: &'static str },
    #[error("its processes take more than {limit} bytes of memory ({setting})")]
    Memory { limit: u64, setting: &'static str },
}

/// Returns true if a signal has stopped the process. A debugger that holds it does not count.
pub(crate) fn is_stopped(pid: u32) -> bool {
    // The name, in parentheses, may contain any text.
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watchdog(seconds: u64) -> Watchdog {
        Watchdog::new(limits(seconds))
    }

    fn limits(seconds: u64) -> WorkLimits {
        let limit = |seconds| Some(SECOND * u32::try_from(seconds).expect("small"));
        WorkLimits {
            execution: TimeLimit { limit: limit(seconds), setting: "execution-timeout-secs" },
            abandoned: TimeLimit { limit: limit(2), setting: "unload-timeout-secs" },
            memory: Some(100),
            memory_setting: "--python-memory",
        }
    }

    fn busy(progress: u64) -> WorkerSnapshot {
        WorkerSnapshot {
            elapsed: SECOND,
            is_busy: true,
            progress,
            is_stopped: false,
            is_abandoned: false,
            memory: None,
        }
    }

    #[test]
    fn every_response_restarts_the_clock() {
        let mut watchdog = watchdog(3);
        for progress in 1..20 {
            assert_eq!(watchdog.look(busy(progress)), None);
            assert_eq!(watchdog.look(busy(progress)), None);
        }
        for _ in 0..2 {
            assert_eq!(watchdog.look(busy(20)), None);
        }
        assert_eq!(watchdog.look(busy(20)), None, "the first look at it was news");
        let overdue = watchdog.look(busy(20)).expect("three seconds without a response");
        assert_eq!(overdue.to_string(), "it did not respond within 3 s (execution-timeout-secs)");
    }

    #[test]
    fn idle_workers_are_never_overdue() {
        let mut watchdog = watchdog(2);
        for _ in 0..10 {
            assert_eq!(watchdog.look(WorkerSnapshot { is_busy: false, ..busy(0) }), None);
        }
        assert_eq!(watchdog.look(busy(0)), None, "a request came");
        assert_eq!(watchdog.look(busy(0)), None);
        assert!(watchdog.look(busy(0)).is_some());
    }

    #[test]
    fn a_stopped_worker_is_detected_early_even_when_idle() {
        let mut watchdog = watchdog(600);
        let stopped = WorkerSnapshot { is_busy: false, is_stopped: true, ..busy(0) };
        for _ in 0..4 {
            assert_eq!(watchdog.look(stopped), None);
        }
        assert_eq!(
            watchdog.look(WorkerSnapshot { is_stopped: false, ..stopped }),
            None,
            "it went on"
        );
        for _ in 0..4 {
            assert_eq!(watchdog.look(stopped), None);
        }
        let overdue = watchdog.look(stopped).expect("five seconds");
        assert!(overdue.to_string().contains("execution-timeout-secs=0"), "{overdue}");
    }

    #[test]
    fn without_a_limit_no_request_is_overdue() {
        let mut watchdog = Watchdog::new(WorkLimits::default());
        assert!(!watchdog.is_on());
        for _ in 0..10_000 {
            assert_eq!(watchdog.look(WorkerSnapshot { is_stopped: true, ..busy(0) }), None);
        }
    }

    #[test]
    fn abandoned_requests_have_a_short_limit() {
        let mut watchdog = watchdog(600);
        let abandoned = WorkerSnapshot { is_abandoned: true, ..busy(0) };
        for _ in 0..5 {
            assert_eq!(watchdog.look(busy(0)), None, "somebody waits");
        }
        let mut watchdog = Watchdog::new(limits(600));
        assert_eq!(watchdog.look(abandoned), None);
        assert_eq!(watchdog.look(abandoned), None);
        let overdue = watchdog.look(abandoned).expect("two seconds");
        assert!(overdue.to_string().ends_with("within 2 s (unload-timeout-secs)"), "{overdue}");
    }

    #[test]
    fn a_worker_over_its_memory_limit_is_ended_even_when_idle() {
        let mut watchdog = watchdog(600);
        let idle = |memory| WorkerSnapshot { is_busy: false, memory: Some(memory), ..busy(0) };
        assert_eq!(watchdog.look(idle(100)), None);
        let overdue = watchdog.look(idle(101)).expect("more than it may");
        assert!(overdue.to_string().contains("100 bytes of memory (--python-memory)"), "{overdue}");
    }

    #[test]
    fn a_stopped_process_is_detected() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep runs");
        assert!(!is_stopped(child.id()));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("sent");
        let untraced = rustix::process::WaitOptions::UNTRACED;
        rustix::process::waitpid(Some(pid), untraced).expect("stopped");
        assert!(is_stopped(child.id()));
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(!is_stopped(child.id()));
    }
}

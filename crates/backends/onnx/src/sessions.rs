//! Chooses the session of a model. Reasoning and measurements: `docs/adr/0003-onnx-thread-layout.md`.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use galatea_types::LockExt;

use crate::{
    layout::RunPlacement,
    ort::{RunMode, Session},
};

/// Runs of each candidate before one is chosen.
const TRIAL_RUNS: u32 = 8;
/// Longest run of models that may end up on one thread: a longer run alone deserves all cores.
const SHORT_RUN: Duration = Duration::from_micros(300);

/// The session that every instance uses. A small new model has two candidates.
pub(crate) struct Sessions {
    chosen: OnceLock<ChosenSession>,
    trial: Mutex<Option<SessionTrial>>,
    /// Number of instances that use the sessions now. It changes over time.
    users: AtomicUsize,
}

/// One instance's use of the sessions, until it is dropped.
pub(crate) struct SessionUse(Arc<Sessions>);

impl SessionUse {
    pub fn of(sessions: Arc<Sessions>) -> Self {
        sessions.users.fetch_add(1, Ordering::Relaxed);
        Self(sessions)
    }

    /// Calls `run` with the session to use and the place to compute on.
    pub fn place<T>(&self, run: impl FnOnce(&Arc<Session>, RunMode) -> T) -> T {
        self.0.place(run)
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

struct ChosenSession {
    session: Arc<Session>,
    placement: RunPlacement,
}

impl Sessions {
    /// Makes one session. Overlapping runs may use its own threads if `lets_runs_overlap`.
    pub fn one(session: Session, lets_runs_overlap: bool) -> Self {
        let chosen = ChosenSession {
            session: Arc::new(session),
            placement: RunPlacement::new(lets_runs_overlap),
        };
        Self { chosen: OnceLock::from(chosen), trial: Mutex::new(None), users: AtomicUsize::new(0) }
    }

    /// Makes two sessions, with and without helping threads. The first runs show which is faster.
    pub fn candidates(helped: Session, alone: Session, lets_runs_overlap: bool) -> Self {
        let trial = SessionTrial {
            helped: Candidate::new(helped),
            alone: Candidate::new(alone),
            lets_runs_overlap,
        };
        let trial = Mutex::new(Some(trial));
        Self { chosen: OnceLock::new(), trial, users: AtomicUsize::new(0) }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "how long executions take decides how they are run"
    )]
    fn place<T>(&self, run: impl FnOnce(&Arc<Session>, RunMode) -> T) -> T {
        if let Some(chosen) = self.chosen.get() {
            let is_shared = self.users.load(Ordering::Relaxed) > 1;
            return chosen.placement.place(is_shared, |mode| run(&chosen.session, mode));
        }
        let Some((session, is_alone)) = self.next_candidate() else {
            // Another thread has chosen meanwhile.
            return self.place(run);
        };
        let started = Instant::now();
        let result = run(&session, RunMode::Here);
        self.note(is_alone, started.elapsed());
        result
    }

    fn next_candidate(&self) -> Option<(Arc<Session>, bool)> {
        let mut trial = self.trial.lock_unpoisoned();
        let trial = trial.as_mut()?;
        let is_alone = trial.alone.started < trial.helped.started;
        let candidate = if is_alone { &mut trial.alone } else { &mut trial.helped };
        candidate.started += 1;
        Some((candidate.session.clone(), is_alone))
    }

    fn note(&self, is_alone: bool, took: Duration) {
        let mut slot = self.trial.lock_unpoisoned();
        let Some(trial) = slot.as_mut() else { return };
        let candidate = if is_alone { &mut trial.alone } else { &mut trial.helped };
        candidate.note(took);
        if trial.is_over()
            && let Some(trial) = slot.take()
        {
            // Set under the lock: a thread that finds no trial finds a choice. The other session is dropped with the last
            // run that uses it.
            let _ = self.chosen.set(trial.choose());
        }
    }
}

struct Candidate {
    session: Arc<Session>,
    started: u32,
    finished: u32,
    /// Time of the shortest run. Other work on the machine makes runs longer, so the longer ones do not count.
    best: Duration,
}

impl Candidate {
    fn new(session: Session) -> Self {
        Self { session: Arc::new(session), started: 0, finished: 0, best: Duration::MAX }
    }

    fn note(&mut self, took: Duration) {
        self.finished += 1;
        // The first run of a session also allocates.
        if self.finished > 1 {
            self.best = self.best.min(took);
        }
    }
}

struct SessionTrial {
    helped: Candidate,
    alone: Candidate,
    lets_runs_overlap: bool,
}

impl SessionTrial {
    fn is_over(&self) -> bool {
        self.helped.finished.min(self.alone.finished) >= TRIAL_RUNS
    }

    /// Chooses a session. Threads that hardly shorten a short run only take the cores from others.
    fn choose(self) -> ChosenSession {
        let (alone, helped) = (self.alone.best, self.helped.best);
        if alone < SHORT_RUN && alone <= helped.mul_f64(1.2) {
            return ChosenSession {
                session: self.alone.session,
                placement: RunPlacement::new(false),
            };
        }
        ChosenSession {
            session: self.helped.session,
            placement: RunPlacement::new(self.lets_runs_overlap),
        }
    }
}

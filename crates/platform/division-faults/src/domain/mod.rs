//! Runs that share threads. Each learns if a fault was its own.

use std::sync::{
    Arc, RwLock,
    atomic::{AtomicU64, Ordering},
};

use galatea_types::{Error, RwLockExt};

use crate::owner::{FaultGuard, counting, unowned};

/// The fault of a run that divided an integer without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model divides an integer by zero, or the smallest integer by -1")]
pub struct DivisionFault;

impl From<DivisionFault> for Error {
    fn from(fault: DivisionFault) -> Self {
        Self::internal(fault.to_string()).with_source(fault)
    }
}

impl DivisionFault {
    /// Returns true if this fault caused `error`.
    pub fn is_cause_of(error: &Error) -> bool {
        let source = std::error::Error::source(error);
        source.is_some_and(|source| source.is::<Self>())
    }
}

/// A group of runs whose work is done by the same threads, such as those of one session.
///
/// A fault on a thread that called [`FaultDomain::run`] is certainly that run's. A fault on a thread of the domain may
/// belong to any overlapping run. Each of those is repeated alone, and only the one that faults again has failed.
#[derive(Debug, Default)]
pub struct FaultDomain {
    /// Number of faults of the domain's own threads.
    faults: AtomicU64,
    /// Taken for writing by a run that must be alone.
    gate: RwLock<()>,
    /// True if runs may be helped by threads that did not call [`FaultDomain::on_own_thread`].
    has_unknown_threads: bool,
}

enum RunVerdict {
    Good,
    /// The run faulted itself.
    Faulted,
    /// The run or another one that overlapped it faulted.
    Suspect,
}

impl FaultDomain {
    /// Makes a domain. All threads that compute, except the callers', must call [`FaultDomain::on_own_thread`].
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Makes a domain in which unknown threads compute as well.
    pub fn with_unknown_threads() -> Arc<Self> {
        Arc::new(Self { has_unknown_threads: true, ..Self::default() })
    }

    /// Calls `run`, twice if it is unclear which of several runs has faulted. The result of a faulty run is dropped.
    pub fn run<T>(&self, mut run: impl FnMut() -> T) -> Result<T, DivisionFault> {
        match self.beside_others(&mut run) {
            (result, RunVerdict::Good) => return Ok(result),
            (_, RunVerdict::Faulted) => return Err(DivisionFault),
            (_, RunVerdict::Suspect) => {}
        }
        let _alone = self.gate.write_unpoisoned();
        match self.watched(run) {
            (result, RunVerdict::Good) => Ok(result),
            _ => Err(DivisionFault),
        }
    }

    /// Calls a function that cannot be repeated. It fails even if only it may have faulted.
    pub fn run_once<T>(&self, run: impl FnOnce() -> T) -> Result<T, DivisionFault> {
        match self.beside_others(run) {
            (result, RunVerdict::Good) => Ok(result),
            _ => Err(DivisionFault),
        }
    }

    /// Calls `work`, which is the complete work of one of the domain's own threads.
    pub fn on_own_thread<T>(&self, work: impl FnOnce() -> T) -> T {
        counting(&self.faults, work)
    }

    fn beside_others<T>(&self, run: impl FnOnce() -> T) -> (T, RunVerdict) {
        let _shared = self.gate.read_unpoisoned();
        self.watched(run)
    }

    /// Calls `run` and reads counters before and after. A helper's fault is counted before the helper reports that its part
    /// is done, and so before the run returns.
    fn watched<T>(&self, run: impl FnOnce() -> T) -> (T, RunVerdict) {
        let _expecting = self.has_unknown_threads.then(FaultGuard::begin);
        let before = self.faults_of_others();
        let own = AtomicU64::new(0);
        let result = counting(&own, run);
        let verdict = if own.load(Ordering::SeqCst) > 0 {
            RunVerdict::Faulted
        } else if self.faults_of_others() != before {
            RunVerdict::Suspect
        } else {
            RunVerdict::Good
        };
        (result, verdict)
    }

    fn faults_of_others(&self) -> (u64, u64) {
        let unowned = if self.has_unknown_threads { unowned() } else { 0 };
        (self.faults.load(Ordering::SeqCst), unowned)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

//! Places the threads of model instances: on CPUs, with the memory of a NUMA node, and with a priority.
//!
//! The command line defines host policies ([`HostPolicies`]), which instance groups use. A [`Placement`] combines a policy
//! and the priority of a model. It is applied to the calling thread. Threads and processes that this one starts afterwards
//! inherit it.

#![warn(missing_docs)]

mod cpus;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other_systems;
mod policy;

use std::{
    io,
    panic::resume_unwind,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(not(target_os = "linux"))]
use self::other_systems as system;
pub use self::policy::{HostPolicies, HostPolicy, PolicyError};

/// The placement of a thread. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// CPUs and memory of the thread.
    pub policy: HostPolicy,
    /// Change of the nice value that the thread inherits. Below 0 it runs before others.
    pub niceness: i32,
}

/// The reason why a thread cannot be placed.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    /// The system refused its CPUs.
    #[error("Unable to set NUMA thread affinity: {0}")]
    Affinity(rustix::io::Errno),
    /// The system refused its memory.
    #[error(
        "Unable to set NUMA memory policy: {0}. A container needs the permission for it (docker run --cap-add=SYS_NICE), \
         or leave 'numa-node' out and name CPUs with 'cpu-cores'"
    )]
    Memory(io::Error),
    /// The thread could not be started.
    #[error("cannot start a thread: {0}")]
    NoThread(io::Error),
}

impl Placement {
    /// Returns true if it changes nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Places the calling thread permanently.
    ///
    /// A priority above that of other threads needs a permission. Without it the thread continues unchanged, with one
    /// warning in the log.
    ///
    /// # Errors
    /// When the system refuses CPUs or memory.
    pub fn apply(&self) -> Result<(), PlacementError> {
        if let Some(cpus) = &self.policy.cpus {
            system::run_on(cpus).map_err(PlacementError::Affinity)?;
        }
        if let Some(node) = self.policy.node {
            system::bind_to(node).map_err(PlacementError::Memory)?;
        }
        self.set_niceness();
        Ok(())
    }

    /// Runs `work` on a new thread with this placement, and waits for it. The default placement runs it on the calling
    /// thread.
    ///
    /// # Errors
    /// Those of [`Placement::apply`].
    ///
    /// # Panics
    /// The panic of `work`.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, PlacementError> {
        if self.is_default() {
            return Ok(work());
        }
        let name = thread::current().name().unwrap_or_default().to_owned();
        thread::scope(|scope| {
            let placed = || self.apply().map(|()| work());
            let thread = thread::Builder::new().name(name).spawn_scoped(scope, placed);
            let outcome = thread.map_err(PlacementError::NoThread)?.join();
            outcome.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    fn set_niceness(&self) {
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        if self.niceness == 0 {
            return;
        }
        // On Linux this changes the calling thread only.
        let Err(error) = rustix::process::nice(self.niceness) else { return };
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            log::warn!(
                "models with optimization.priority PRIORITY_MAX run at the same priority as others: {error}. Give the \
                 server the right to raise it (CAP_SYS_NICE, for a container docker run --cap-add=SYS_NICE), or give the \
                 other models PRIORITY_MIN"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rustix::thread::CpuSet;

    use super::*;

    fn allowed() -> BTreeSet<usize> {
        let set = rustix::thread::sched_getaffinity(None).expect("a set");
        (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
    }

    /// Field 19 of `/proc/thread-self/stat`; the name of the thread stands before it in parentheses.
    fn niceness() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("a file");
        let fields = stat.rsplit_once(')').expect("a name").1;
        fields.split_whitespace().nth(16).expect("a field").parse().expect("a number")
    }

    #[test]
    fn a_pinned_thread_passes_its_cpus_to_new_threads() {
        let cpu = *allowed().last().expect("a CPU");
        let mut policy = HostPolicy::default();
        policy.set("cpu-cores", &format!("{cpu}-{cpu}")).expect("valid");
        let placement = Placement { policy, niceness: 3 };
        let before = niceness();
        let started = thread::spawn(move || {
            placement.apply().expect("applied");
            let own = (allowed(), niceness());
            (own, thread::spawn(|| (allowed(), niceness())).join().expect("ended"))
        });
        let (own, of_its_thread) = started.join().expect("ended");
        assert_eq!(own, (BTreeSet::from([cpu]), before + 3));
        assert_eq!(of_its_thread, own);
        assert_eq!(niceness(), before, "this thread stays as it was");
    }

    #[test]
    fn work_runs_on_a_placed_thread_and_its_panics_are_passed_on() {
        let placement = Placement { niceness: 2, ..Placement::default() };
        let before = niceness();
        assert_eq!(placement.run(niceness).expect("placed"), before + 2);
        assert_eq!(niceness(), before);
        let panic = std::panic::catch_unwind(|| placement.run(|| panic!("as told")));
        assert_eq!(panic.expect_err("a panic").downcast_ref(), Some(&"as told"));
    }

    #[test]
    fn the_default_changes_nothing() {
        let all = allowed();
        let started = thread::spawn(move || {
            Placement::default().apply().expect("applied");
            allowed()
        });
        assert_eq!(started.join().expect("ended"), all);
    }
}

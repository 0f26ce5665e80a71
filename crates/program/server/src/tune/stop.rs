//! Signals that end a measurement. The running server is stopped, so that all code that waits for it ends and removes its
//! files.

use std::{
    io,
    process::exit,
    sync::{Arc, Mutex},
    thread,
};

use galatea_perf::probe::Interrupt;
use galatea_types::LockExt;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// The exit status of an interrupted program in shells.
pub const INTERRUPTED: u8 = 130;

/// The state of signals, and the process to which they are passed.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    interrupt: Arc<Interrupt>,
    server: Arc<Mutex<Option<Pid>>>,
}

impl Stop {
    /// Watches for signals from now on. A second one ends the program at once.
    pub fn watch() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let stop = Self::default();
        let watcher = stop.clone();
        thread::spawn(move || signals.forever().for_each(|_| watcher.ask()));
        Ok(stop)
    }

    fn ask(&self) {
        let is_second = self.is_asked();
        self.interrupt.raise();
        if let Some(server) = *self.server.lock_unpoisoned() {
            // The process may have ended already.
            let _ = kill_process(server, if is_second { Signal::KILL } else { Signal::TERM });
        }
        if is_second {
            exit(INTERRUPTED.into());
        }
    }

    /// Returns the interrupt that a signal raises, for the measurement.
    pub fn interrupt(&self) -> Arc<Interrupt> {
        self.interrupt.clone()
    }

    pub fn is_asked(&self) -> bool {
        self.interrupt.is_raised()
    }

    /// Sets the process that gets signals from now on; `None` before anybody waits for its end.
    pub fn reach(&self, server: Option<Pid>) {
        *self.server.lock_unpoisoned() = server;
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::process::ExitStatusExt, process::Command};

    use super::*;

    #[test]
    fn a_signal_reaches_the_current_server() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("started");
        let stop = Stop::default();
        stop.reach(i32::try_from(child.id()).ok().and_then(Pid::from_raw));
        assert!(!stop.is_asked());
        stop.ask();
        assert!(stop.is_asked());
        assert_eq!(child.wait().expect("ended").signal(), Some(Signal::TERM.as_raw()));
    }
}

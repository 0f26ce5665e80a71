//! Events inside the server that a test can wait for, in place of polling a figure.
//!
//! The feed is off by default: it then costs a branch per event.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use crate::LockExt;

/// Most events that wait for a reader. It loses further ones: a reader that has stopped must not take unlimited memory.
const MOST_WAITING: usize = 1 << 16;

/// Longest wait of a test for an event. Only a failing test waits so long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// An event inside the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugEvent {
    /// An instance of a model with a batcher has formed a batch, and is about to execute it.
    BatchFormed {
        /// The instance.
        instance: InstanceName,
        /// Requests in the batch.
        requests: usize,
    },
    /// An instance begins to execute.
    ExecutionBegan {
        /// The instance.
        instance: InstanceName,
        /// Requests that it executes together.
        requests: usize,
    },
    /// An instance has no work. It sleeps, or is about to, and will see all work from now on.
    InstanceIdle {
        /// The instance.
        instance: InstanceName,
    },
    /// An instance is out of service and will be restarted.
    RestartPlanned {
        /// The instance.
        instance: InstanceName,
        /// The wait before the restart.
        wait: Duration,
    },
    /// An instance that was out of service works again: a model in a process of its own has a new process.
    WorkerRestarted {
        /// The instance.
        instance: InstanceName,
    },
    /// Settings that were changed at run time are in force from now on.
    SettingsChanged {
        /// The settings: `log`.
        settings: &'static str,
    },
}

/// The name of an instance of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceName {
    /// Its model.
    pub model: Arc<str>,
    /// The version of the model.
    pub version: i64,
    /// The name of the instance.
    pub instance: String,
}

impl DebugEvent {
    /// Returns the name of its kind, as tests outside the server read it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BatchFormed { .. } => "batch_formed",
            Self::ExecutionBegan { .. } => "execution_began",
            Self::InstanceIdle { .. } => "instance_idle",
            Self::RestartPlanned { .. } => "restart_planned",
            Self::WorkerRestarted { .. } => "worker_restarted",
            Self::SettingsChanged { .. } => "settings_changed",
        }
    }

    /// Returns the instance of the event, if it has one.
    pub fn instance(&self) -> Option<&InstanceName> {
        match self {
            Self::BatchFormed { instance, .. }
            | Self::ExecutionBegan { instance, .. }
            | Self::InstanceIdle { instance }
            | Self::RestartPlanned { instance, .. }
            | Self::WorkerRestarted { instance } => Some(instance),
            Self::SettingsChanged { .. } => None,
        }
    }
}

/// A feed that passes events to its readers. The default is off and takes none.
#[derive(Clone, Default)]
pub struct DebugEvents(Option<Arc<Mutex<Vec<SyncSender<DebugEvent>>>>>);

impl DebugEvents {
    /// Makes a feed that is on.
    pub fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// Reports an event. The event is made only if the feed is on.
    #[inline]
    pub fn report(&self, event: impl FnOnce() -> DebugEvent) {
        if let Some(readers) = &self.0 {
            let event = event();
            // A full channel loses the event; a channel without reader is removed.
            readers.lock_unpoisoned().retain(|reader| {
                use std::sync::mpsc::TrySendError::Disconnected;
                !matches!(reader.try_send(event.clone()), Err(Disconnected(_)))
            });
        }
    }

    /// Reads the events from now on; there are none when the feed is off.
    pub fn subscribe(&self) -> DebugEventReader {
        let (sender, events) = sync_channel(MOST_WAITING);
        if let Some(readers) = &self.0 {
            readers.lock_unpoisoned().push(sender);
        }
        DebugEventReader(events)
    }
}

impl fmt::Debug for DebugEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DebugEvents").field(&self.0.is_some()).finish()
    }
}

/// Reads events in the order in which they were reported.
#[derive(Debug)]
pub struct DebugEventReader(Receiver<DebugEvent>);

impl DebugEventReader {
    /// Waits for an event that satisfies `is_it`, and returns it; earlier events are skipped. `what` names the event in the
    /// message of a failing test.
    ///
    /// # Panics
    /// When no such event comes within a minute, with the events that came, or when the feed has ended.
    #[track_caller]
    pub fn wait_for(&self, what: &str, mut is_it: impl FnMut(&DebugEvent) -> bool) -> DebugEvent {
        let deadline = Instant::now() + LONGEST_WAIT;
        let mut others = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.0.recv_timeout(left) {
                Ok(event) if is_it(&event) => return event,
                Ok(event) => others.push(event),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no event in {LONGEST_WAIT:?}: {what}; there were {others:?}")
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("no event can come any more: {what}; there were {others:?}")
                }
            }
        }
    }
}

impl Iterator for DebugEventReader {
    type Item = DebugEvent;

    /// Waits for the next event; `None` when the feed has ended.
    fn next(&mut self) -> Option<DebugEvent> {
        self.0.recv().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(settings: &'static str) -> DebugEvent {
        DebugEvent::SettingsChanged { settings }
    }

    #[test]
    fn each_reader_gets_later_events_in_order() {
        let events = DebugEvents::on();
        events.report(|| changed("before"));
        let (first, second) = (events.subscribe(), events.clone().subscribe());
        for settings in ["a", "b", "c"] {
            events.report(|| changed(settings));
        }
        assert_eq!(first.wait_for("b", |event| *event == changed("b")), changed("b"));
        drop(events);
        assert_eq!(first.collect::<Vec<_>>(), [changed("c")]);
        assert_eq!(second.collect::<Vec<_>>(), ["a", "b", "c"].map(changed));
    }

    #[test]
    fn no_events_are_made_when_switched_off() {
        let events = DebugEvents::default();
        events.report(|| panic!("nobody reads it"));
        assert_eq!(events.subscribe().next(), None);
    }

    #[test]
    fn a_dropped_or_stalled_reader_blocks_nobody() {
        let events = DebugEvents::on();
        drop(events.subscribe());
        let slow = events.subscribe();
        for _ in 0..2 * MOST_WAITING {
            events.report(|| changed("a"));
        }
        drop(events);
        assert_eq!(slow.count(), MOST_WAITING);
    }

    #[test]
    #[should_panic(expected = "no event can come any more: the one; there were [SettingsChanged")]
    fn a_failed_wait_names_the_expected_and_received_events() {
        let events = DebugEvents::on();
        let reader = events.subscribe();
        events.report(|| changed("a"));
        drop(events);
        reader.wait_for("the one", |_| false);
    }
}

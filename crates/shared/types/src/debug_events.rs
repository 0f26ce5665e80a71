//! Events inside the server that a test can wait for, in place of asking again and again until a figure looks right.
//!
//! The feed is off unless somebody asks for it: then it costs a branch where something happens.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use crate::LockExt;

/// Most events that wait for one reader. More are lost for it: a reader that stopped must not take memory for ever.
const MOST_WAITING: usize = 1 << 16;

/// How long a test waits for an event. Only one that fails waits so long.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Something that has happened inside the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugEvent {
    /// An instance of a model with a batcher has put requests together, and is about to execute them.
    BatchFormed {
        /// Who.
        instance: InstanceName,
        /// Requests in the batch.
        requests: usize,
    },
    /// An instance begins to execute.
    ExecutionBegan {
        /// Who.
        instance: InstanceName,
        /// Requests that it executes together.
        requests: usize,
    },
    /// An instance has nothing to do. It sleeps, or is about to, and misses nothing that comes from now on.
    InstanceIdle {
        /// Who.
        instance: InstanceName,
    },
    /// An instance is out of service, and is started again.
    RestartPlanned {
        /// Who.
        instance: InstanceName,
        /// How long that waits.
        wait: Duration,
    },
    /// An instance that was out of service works again: for a model in a process of its own, in a new one.
    WorkerRestarted {
        /// Who.
        instance: InstanceName,
    },
    /// Settings that were changed while the server runs hold from now on.
    SettingsChanged {
        /// Which: `log`.
        settings: &'static str,
    },
}

/// One instance of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceName {
    /// Its model.
    pub model: Arc<str>,
    /// The version of that.
    pub version: i64,
    /// Its own name.
    pub instance: String,
}

impl DebugEvent {
    /// Returns the name of its kind, as tests outside of the server read it.
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

    /// Returns the instance that it is about, if it is about one.
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

/// Takes reports of events to whoever reads them. The default is off, and takes none.
#[derive(Clone, Default)]
pub struct DebugEvents(Option<Arc<Mutex<Vec<SyncSender<DebugEvent>>>>>);

impl DebugEvents {
    /// Makes a feed that is on.
    pub fn on() -> Self {
        Self(Some(Arc::default()))
    }

    /// Reports an event, which is made only where the feed is on.
    #[inline]
    pub fn report(&self, event: impl FnOnce() -> DebugEvent) {
        if let Some(readers) = &self.0 {
            let event = event();
            // A full one loses the event, one whose reader is gone goes.
            readers.lock_unpoisoned().retain(|reader| {
                use std::sync::mpsc::TrySendError::Disconnected;
                !matches!(reader.try_send(event.clone()), Err(Disconnected(_)))
            });
        }
    }

    /// Reads the events from now on; none come where the feed is off.
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
    /// Waits for an event of which `is_it` holds, and returns it; those before it are passed over. `what` says what is waited
    /// for, in the message of a test that fails.
    ///
    /// # Panics
    /// When no such event comes within a minute, with those that came, or when none can come any more.
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
    fn each_reader_gets_what_comes_after_it_in_order() {
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
    fn nothing_is_made_where_it_is_off() {
        let events = DebugEvents::default();
        events.report(|| panic!("nobody reads it"));
        assert_eq!(events.subscribe().next(), None);
    }

    #[test]
    fn a_reader_that_is_gone_or_does_not_read_holds_up_nobody() {
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
    fn a_wait_that_is_in_vain_says_for_what_and_what_came() {
        let events = DebugEvents::on();
        let reader = events.subscribe();
        events.report(|| changed("a"));
        drop(events);
        reader.wait_for("the one", |_| false);
    }
}

//! The list of connections. Its lock is taken when a connection opens or closes, and for a sweep.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use galatea_types::{LockExt, MemoryReservation};
use tokio::sync::Notify;

use super::{
    activity::{Activity, CloseReason},
    settings::ConnectionSettings,
};

#[derive(Debug, Default)]
pub(super) struct Registry {
    state: Mutex<State>,
    /// Notified when a connection has closed.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    connections: HashMap<u64, Arc<Activity>>,
    next: u64,
}

impl Registry {
    pub fn len(&self) -> usize {
        self.state.lock_unpoisoned().connections.len()
    }

    /// Registers a connection that holds `memory`. Returns `None` if `most` connections are open.
    pub fn insert(
        self: &Arc<Self>,
        activity: &Arc<Activity>,
        most: usize,
        memory: impl FnOnce() -> MemoryReservation,
    ) -> Option<Slot> {
        let mut state = self.state.lock_unpoisoned();
        if state.connections.len() >= most {
            return None;
        }
        let key = state.next;
        state.next += 1;
        state.connections.insert(key, activity.clone());
        drop(state);
        let activity = activity.clone();
        Some(Slot { registry: self.clone(), key, activity, memory: memory() })
    }

    /// Like [`insert`](Self::insert), but waits until fewer than `most` connections are open.
    pub async fn insert_when_free(
        self: &Arc<Self>,
        activity: &Arc<Activity>,
        most: usize,
        memory: impl Fn() -> MemoryReservation,
    ) -> Slot {
        loop {
            let freed = self.freed.notified();
            if let Some(slot) = self.insert(activity, most, &memory) {
                return slot;
            }
            freed.await;
        }
    }

    pub fn least_missed(&self) -> Option<Arc<Activity>> {
        let state = self.state.lock_unpoisoned();
        let ranked = state.connections.values().filter_map(|a| Some((a.worth()?, a)));
        ranked.min_by_key(|(worth, _)| *worth).map(|(_, activity)| activity.clone())
    }

    pub fn overdue(&self, settings: &ConnectionSettings) -> Vec<(Arc<Activity>, CloseReason)> {
        let state = self.state.lock_unpoisoned();
        let overdue = |activity: &Arc<Activity>| {
            activity.overdue(settings).map(|what| (activity.clone(), what))
        };
        state.connections.values().filter_map(overdue).collect()
    }
}

/// The entry of one connection in the registry, removed on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    registry: Arc<Registry>,
    key: u64,
    pub activity: Arc<Activity>,
    memory: MemoryReservation,
}

impl Slot {
    pub fn hold_more(&mut self, bytes: usize) {
        self.memory.grow(bytes);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let gone = self.registry.state.lock_unpoisoned().connections.remove(&self.key);
        drop(gone);
        self.registry.freed.notify_waiters();
    }
}

//! The list of connections. Its lock is taken when one comes or goes, and for a look over all of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use galatea_types::{LockExt, MemoryReservation};
use tokio::sync::Notify;

use super::{
    activity::{Activity, Overdue},
    settings::ConnectionSettings,
};

#[derive(Debug, Default)]
pub(super) struct Registry {
    state: Mutex<State>,
    /// A connection has gone.
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

    /// The place of a connection that holds `memory`; `None` where there are `most`.
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

    /// As [`insert`](Self::insert), once there are fewer than `most`.
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

    pub fn overdue(&self, settings: &ConnectionSettings) -> Vec<(Arc<Activity>, Overdue)> {
        let state = self.state.lock_unpoisoned();
        let overdue = |activity: &Arc<Activity>| {
            activity.overdue(settings).map(|what| (activity.clone(), what))
        };
        state.connections.values().filter_map(overdue).collect()
    }
}

/// The place of one connection, free again when it is dropped.
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

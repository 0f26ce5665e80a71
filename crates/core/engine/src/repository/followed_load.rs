//! Followers of one load of a model, which get its events until it is unloaded.

use std::sync::Mutex;

use galatea_types::LockExt;

/// The stages of a load after its files were checked, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEvent {
    /// Every version is loaded.
    LoadComplete,
    /// The load failed, and nothing reads the files any more.
    LoadFail,
    /// The first version begins to unload.
    Unload,
    /// The last version is unloaded, and nothing reads the files any more.
    UnloadComplete,
}

/// Receives the events of one load. Dropped after the last event.
pub trait LoadFollower: Send + Sync {
    /// Handles an event. May block: no request waits for it.
    fn on_event(&self, event: LoadEvent);
}

/// The followers of one load, and the last event that they got.
#[derive(Default)]
pub(crate) struct FollowedLoad {
    pub followers: Vec<Box<dyn LoadFollower>>,
    told: Mutex<Option<LoadEvent>>,
}

impl FollowedLoad {
    /// Sends an event to each follower once; completing events in reverse order, as Triton does.
    pub fn tell(&self, event: LoadEvent) {
        if self.told.lock_unpoisoned().replace(event) == Some(event) {
            return;
        }
        let followers = self.followers.iter();
        match event {
            LoadEvent::Unload => followers.for_each(|follower| follower.on_event(event)),
            _ => followers.rev().for_each(|follower| follower.on_event(event)),
        }
    }
}

impl Drop for FollowedLoad {
    fn drop(&mut self) {
        if self.told.lock_unpoisoned().is_none() {
            return self.tell(LoadEvent::LoadFail);
        }
        self.tell(LoadEvent::Unload);
        self.tell(LoadEvent::UnloadComplete);
    }
}

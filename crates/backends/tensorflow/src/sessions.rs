//! Assigns instances to sessions. All share one, so that weights are in memory once and all see the same variables, unless
//! the model asks for more (`MAX_SESSION_SHARE_COUNT`).

use std::{
    ops::Deref,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use galatea_types::{LockExt, Result};

use crate::model::LoadedSession;

/// A session with the number of instances that use it.
struct Shared {
    loaded: LoadedSession,
    users: AtomicUsize,
}

/// The sessions of a model. The first lives as long as the model, others as long as instances use them.
pub(crate) struct Sessions {
    first: Arc<Shared>,
    others: Mutex<Vec<Weak<Shared>>>,
    /// Most instances that share a session. `None`: any number.
    limit: Option<usize>,
}

/// One instance's use of a session, until it is dropped.
pub(crate) struct SessionUse(Arc<Shared>);

impl Deref for SessionUse {
    type Target = LoadedSession;

    fn deref(&self) -> &LoadedSession {
        &self.0.loaded
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    pub fn new(first: LoadedSession, limit: Option<usize>) -> Self {
        let first = Arc::new(Shared { loaded: first, users: AtomicUsize::new(0) });
        Self { first, others: Mutex::default(), limit }
    }

    /// Returns a session that has room, or a new one.
    pub fn take(&self, open: impl FnOnce() -> Result<LoadedSession>) -> Result<SessionUse> {
        let mut others = self.others.lock_unpoisoned();
        others.retain(|session| session.strong_count() > 0);
        let mut known =
            [self.first.clone()].into_iter().chain(others.iter().filter_map(Weak::upgrade));
        let has_room = |session: &Arc<Shared>| {
            self.limit.is_none_or(|limit| session.users.load(Ordering::Relaxed) < limit)
        };
        let session = match known.find(has_room) {
            Some(session) => session,
            None => {
                let session = Arc::new(Shared { loaded: open()?, users: AtomicUsize::new(0) });
                others.push(Arc::downgrade(&session));
                session
            }
        };
        session.users.fetch_add(1, Ordering::Relaxed);
        Ok(SessionUse(session))
    }
}

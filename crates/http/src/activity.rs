use std::{
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

/// What goes on in a server: requests being answered, connections open, and whether it still takes more.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    requests: AtomicUsize,
    connections: AtomicUsize,
    is_closing: AtomicBool,
    idle: Mutex<()>,
    became_idle: Condvar,
}

impl Activity {
    /// From now on requests are refused.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    pub fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.requests.fetch_add(1, Ordering::SeqCst);
        RequestGuard(self.clone())
    }

    pub fn open_connection(self: &Arc<Self>) -> ConnectionGuard {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard(self.clone())
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Waits until no request is being answered, at most `timeout`. How many are left.
    pub fn wait_idle(&self, timeout: Duration) -> usize {
        let guard = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_busy = |(): &mut ()| self.requests() > 0;
        drop(self.became_idle.wait_timeout_while(guard, timeout, is_busy));
        self.requests()
    }
}

/// Held while a request is answered.
#[derive(Debug)]
pub(crate) struct RequestGuard(Arc<Activity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let was_last = self.0.requests.fetch_sub(1, Ordering::SeqCst) == 1;
        // Only a server that is closing has somebody waiting.
        if was_last && self.0.is_closing() {
            let _guard = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.became_idle.notify_all();
        }
    }
}

/// Held while a connection is open.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(Arc<Activity>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

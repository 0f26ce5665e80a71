//! The tasks that calls run in, and when one is given up because its client does not read.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
};

use galatea_frontend::ConnectionSettings;
use hyper::rt::Executor;

use crate::patience::Patience;

/// How far the response of a call has come on its way to the client. Written by the response's body, read by its task.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// There is more to send than the client takes.
    is_blocked: AtomicBool,
    /// Bytes since the last look.
    taken: AtomicUsize,
}

tokio::task_local! {
    static PROGRESS: Arc<Progress>;
}

impl Progress {
    /// Of the call that the current task runs.
    pub fn of_this_call() -> Arc<Self> {
        PROGRESS.try_with(Arc::clone).unwrap_or_default()
    }

    /// The connection has taken a piece of the response, and asks for the next one when there is room for it.
    pub fn has_taken(&self, bytes: usize) {
        self.taken.fetch_add(bytes.max(1), Relaxed);
        self.is_blocked.store(true, Relaxed);
    }

    /// There is nothing to take: the client does not have to.
    pub fn has_nothing(&self) {
        self.is_blocked.store(false, Relaxed);
    }
}

/// Runs calls as tasks of the current runtime. One whose client takes nothing of its response for too long is dropped,
/// which resets its stream; the others on the connection go on.
#[derive(Clone)]
pub(crate) struct CallExecutor {
    settings: Arc<ConnectionSettings>,
}

impl CallExecutor {
    pub fn new(settings: &ConnectionSettings) -> Self {
        // Of a piece that a slow client takes byte by byte nothing is seen before its end: any progress will do.
        let settings = ConnectionSettings { min_bytes_per_second: 0, ..*settings };
        Self { settings: Arc::new(settings) }
    }
}

impl<F: Future + Send + 'static> Executor<F> for CallExecutor {
    fn execute(&self, call: F) {
        let progress = Arc::new(Progress::default());
        let patience = Patience::new(&self.settings);
        tokio::spawn(PROGRESS.scope(progress.clone(), watched(Box::pin(call), progress, patience)));
    }
}

async fn watched<F: Future>(
    mut call: Pin<Box<F>>,
    progress: Arc<Progress>,
    mut patience: Patience,
) {
    poll_fn(|cx| {
        if call.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if !progress.is_blocked.load(Relaxed) {
            patience.rest();
            return Poll::Pending;
        }
        patience.progress(progress.taken.swap(0, Relaxed));
        patience.poll_lost(cx).map(|_| log::debug!("grpc: reset a call: its client does not read"))
    })
    .await;
}

//! Runs loads, unloads and slow queries on their own threads, so that front ends wait without blocking one.
//!
//! Each class of operation ([`queue::Class`]) has a number of threads that the others cannot take. So the index and the
//! readiness of models are answered while many loads wait. Operations on one model run one at a time; the others wait
//! without a thread, and equal ones are done once.

mod pool;
mod queue;

use std::sync::Arc;

use galatea_telemetry::{families, metrics::Figures};
use galatea_types::Result;
use tokio::sync::oneshot;

use self::{
    pool::{PendingOperation, Pool, panicked},
    queue::{Limit, Operation},
};
use crate::{manager::ModelManager, overrides::LoadOverrides};

/// The largest number of waiting callers of one class; more are refused.
const MAX_WAITING: usize = 4096;

/// The largest number of unloads at a time. An unload waits for a running load of its model.
const UNLOAD_THREADS: usize = 4;

/// The largest number of readiness checks of models at a time. A model that does not answer keeps a thread.
const READINESS_THREADS: usize = 16;

const QUERY_THREADS: usize = 2;

/// Engine operations for front ends that may block. Every method returns a future of the result at once.
///
/// A future that is dropped before its operation began withdraws the operation.
pub struct Control {
    pool: Pool,
    manager: Arc<ModelManager>,
}

impl Control {
    /// Creates the control. `load_threads` is the number of loads that run at a time.
    pub(crate) fn new(manager: Arc<ModelManager>, load_threads: usize) -> Self {
        let limit = |running| Limit { running, waiting: MAX_WAITING };
        let threads = [load_threads.max(1), UNLOAD_THREADS, READINESS_THREADS, QUERY_THREADS];
        let limits = threads.map(limit);
        Self { pool: Pool::new(limits), manager }
    }

    /// Does [`Engine::load_model`](crate::Engine::load_model). Waiting loads of one model without overrides are done once,
    /// after the running one has ended.
    ///
    /// # Errors
    /// The reason of the failure; `Exhausted` when too many loads wait.
    pub fn load(
        &self,
        model: String,
        overrides: LoadOverrides,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let has_overrides = !overrides.is_empty();
        let operation = Operation::Load { model: model.clone(), has_overrides };
        self.change(operation, model, |manager, model| manager.load(model, overrides))
    }

    /// Does [`Engine::unload_model`](crate::Engine::unload_model).
    ///
    /// # Errors
    /// The reason of the refusal; `Exhausted` when too many unloads wait.
    pub fn unload(
        &self,
        model: String,
        with_dependents: bool,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let operation = Operation::Unload { model: model.clone(), with_dependents };
        self.change(operation, model, move |manager, model| manager.unload(model, with_dependents))
    }

    fn change<W>(
        &self,
        operation: Operation,
        model: String,
        work: W,
    ) -> impl Future<Output = Result<()>> + Send + use<W>
    where
        W: FnOnce(&ModelManager, &str) -> Result<()> + Send + 'static,
    {
        let (manager, allowed) = (self.manager.clone(), self.manager.check_call(&model));
        let work = move || work(&manager, &model).map(|()| true);
        let submitted = allowed.map(|()| self.pool.submit(operation, work));
        async { submitted?.await.map(drop) }
    }

    /// Returns true if a model is ready, also by its own check if it has one; false also if it does not exist.
    ///
    /// # Errors
    /// `Unavailable` when the server takes no requests.
    pub fn is_model_ready(
        &self,
        model: &str,
        version: Option<i64>,
    ) -> impl Future<Output = Result<bool>> + Send + use<> {
        let models = &self.manager.models;
        let serving = models.check_serving();
        let asked = match models.for_client(model, version) {
            Ok(found) if found.is_ready() && found.has_readiness_check() => {
                // By the number of the version, so that all ways to ask for it are one query.
                Err(self.ask(model.to_owned(), Some(found.version())))
            }
            found => Ok(found.is_ok_and(|found| found.is_ready())),
        };
        async {
            serving?;
            Ok(match asked {
                Ok(is_known) => is_known,
                Err(asked) => asked.await.unwrap_or(false),
            })
        }
    }

    /// Asks a model for its readiness. The model is looked up again then, because it may have been reloaded.
    fn ask(&self, model: String, version: Option<i64>) -> PendingOperation {
        let operation = Operation::Readiness { model: model.clone(), version };
        let manager = self.manager.clone();
        self.pool.submit(operation, move || {
            let found = manager.models.for_client(&model, version);
            Ok(found.is_ok_and(|found| found.query_readiness()))
        })
    }

    /// Does `work` on a control thread. For work that reads the repository or goes through every model.
    ///
    /// # Errors
    /// `Exhausted` when too many wait, `Internal` when it panicked.
    pub fn query<R, W>(&self, work: W) -> impl Future<Output = Result<R>> + Send + use<R, W>
    where
        R: Send + 'static,
        W: FnOnce() -> R + Send + 'static,
    {
        let (sender, result) = oneshot::channel();
        let done = self.pool.submit(Operation::Query, move || Ok(sender.send(work()).is_ok()));
        async {
            done.await?;
            result.await.map_err(|_| panicked())
        }
    }

    pub(crate) fn add_figures(&self, figures: &mut Figures) {
        for (class, counts) in self.pool.counts() {
            figures.set_labelled(&families::CONTROL_RUNNING, class.label(), counts.running);
            figures.set_labelled(&families::CONTROL_WAITING, class.label(), counts.waiting);
        }
    }

    /// Refuses the loads that have not begun, and later ones.
    pub(crate) fn refuse_loads(&self) {
        self.pool.refuse_loads();
    }
}

#[cfg(test)]
mod tests;

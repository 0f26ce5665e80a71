//! Requests to the server from synchronous code: the model's facts, counters, shared memory.

use std::time::Duration;

use galatea_client::{Admin, Connector, ModelStatistics, Target};
use galatea_perf_types::{
    failure::{Failure, Result},
    load::ServerStatistics,
    status::ModelCounters,
};
use tokio::{runtime::Runtime, task::LocalSet, time::timeout};

/// A connection of its own, which the calling thread drives.
pub struct ServerLink {
    runtime: Runtime,
    local: LocalSet,
    admin: Admin,
}

impl ServerLink {
    pub fn open(target: Target) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::generic(format!("error: cannot start: {error}")))?;
        let local = LocalSet::new();
        let admin = local
            .block_on(&runtime, async { Connector::new(target)?.admin().await })
            .map_err(|error| {
                Failure::generic(format!(
                    "error: failed to get model metadata: {}",
                    error.message()
                ))
            })?;
        Ok(Self { runtime, local, admin })
    }

    /// Runs a request to its end.
    pub fn ask<T>(&mut self, question: impl AsyncFnOnce(&mut Admin) -> T) -> T {
        self.local.block_on(&self.runtime, question(&mut self.admin))
    }

    /// Like [`Self::ask`] for a request the run cannot do without: an error names its purpose before the reason.
    pub fn need<T>(
        &mut self,
        what: &str,
        question: impl AsyncFnOnce(&mut Admin) -> galatea_types::Result<T>,
    ) -> Result<T> {
        self.ask(question)
            .map_err(|error| Failure::generic(format!("error: {what}: {}", error.message())))
    }
}

/// Connects, runs one request and closes the connection, all within the limit; `None`: it was too late, or could not connect.
pub fn ask_within<T>(
    limit: Duration,
    target: Target,
    question: impl AsyncFnOnce(&mut Admin) -> T,
) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let asked =
        async { Some(question(&mut Connector::new(target).ok()?.admin().await.ok()?).await) };
    LocalSet::new().block_on(&runtime, async { timeout(limit, asked).await.ok().flatten() })
}

/// Reader of the counters of one model, or of all.
pub struct StatisticsReader<'a> {
    pub link: &'a mut ServerLink,
    pub model: &'a str,
    /// The version; empty: all versions.
    pub version: &'a str,
}

impl ServerStatistics for StatisticsReader<'_> {
    fn read(&mut self, all_models: bool) -> Result<Vec<((String, String), ModelCounters)>> {
        let (model, version) = if all_models { ("", "") } else { (self.model, self.version) };
        let statistics = self.link.ask(async |admin| admin.statistics(model, version).await);
        let statistics = statistics.map_err(|error| Failure::generic(error.message()))?;
        Ok(statistics.into_iter().map(counters).collect())
    }
}

fn counters(of: ModelStatistics) -> ((String, String), ModelCounters) {
    let items = of.batches.iter().map(|b| b.batch_size.saturating_mul(b.compute_infer.count));
    let counters = ModelCounters {
        success: of.success,
        inference_count: of.inference_count,
        execution_count: of.execution_count,
        executed_items: items.fold(0, u64::saturating_add),
        queue: of.queue,
        compute_input: of.compute_input,
        compute_infer: of.compute_infer,
        compute_output: of.compute_output,
        cache_hit: of.cache_hit,
        cache_miss: of.cache_miss,
    };
    ((of.name, of.version), counters)
}

//! The server's counts during a window.

use std::collections::BTreeMap;

use galatea_client::CountAndTime;
use galatea_perf_types::{
    failure::{Failure, Result},
    model::{ComposingModel, ModelInfo},
    status::{ModelCounters, ServerStats},
};

/// Counters by name and version at one moment.
pub(super) type Snapshot = BTreeMap<(String, String), ModelCounters>;

/// The version of models that were not called because the ensemble answered from its cache.
const NO_VERSION: i64 = -1;

/// Counters at both ends of a window.
pub(super) struct Change<'a> {
    pub begin: &'a Snapshot,
    pub end: &'a Snapshot,
    pub model: &'a ModelInfo,
    /// Warnings to print. perf_analyzer repeats them with every window.
    pub warnings: Vec<String>,
}

impl Change<'_> {
    /// Returns the statistics of the model and, recursively, of the models in it.
    pub(super) fn stats(&mut self) -> Result<ServerStats> {
        let model = self.model;
        self.with_composing(&model.name, &model.version, &model.composing)
    }

    fn with_composing(
        &mut self,
        name: &str,
        version: &str,
        composing: &[ComposingModel],
    ) -> Result<ServerStats> {
        let version = self.version_of(name, version)?;
        let mut stats =
            ServerStats { counters: self.counters(name, version), composing: BTreeMap::new() };
        for step in composing {
            let version = self.version_of(&step.name, &step.version)?.to_string();
            let inner = self.with_composing(&step.name, &version, &step.composing)?;
            stats.composing.insert((step.name.clone(), version), inner);
        }
        Ok(stats)
    }

    /// Returns the requested version or, without one, the newest that worked during the window.
    fn version_of(&mut self, name: &str, version: &str) -> Result<i64> {
        let found = if version.is_empty() {
            self.newest_active(name)
        } else {
            let id = (name.to_owned(), version.to_owned());
            self.end.contains_key(&id).then(|| version.parse().ok()).flatten()
        };
        match found {
            Some(version) => Ok(version),
            // If the ensemble's own cache answers, none of its models is called.
            None if self.model.top_level_response_cache => Ok(NO_VERSION),
            None => Err(Failure::generic("failed to find the requested model version")),
        }
    }

    fn newest_active(&mut self, name: &str) -> Option<i64> {
        let active: Vec<i64> = self
            .end
            .iter()
            .filter(|(id, after)| id.0 == name && after.queue.count > self.queued_before(id))
            .filter_map(|(id, _)| id.1.parse().ok())
            .collect();
        if active.len() > 1 {
            self.warnings.push(format!(
                "WARNING: Multiple versions of model {name} are loaded in the triton server, and the version to use was unspecified. The stats for that model may be inaccurate."
            ));
        }
        active.into_iter().max()
    }

    fn queued_before(&self, id: &(String, String)) -> u64 {
        self.begin.get(id).map_or(0, |before| before.queue.count)
    }

    fn counters(&self, name: &str, version: i64) -> ModelCounters {
        let id = (name.to_owned(), version.to_string());
        let end = self.end.get(&id).copied().unwrap_or_default();
        let begin = self.begin.get(&id).copied().unwrap_or_default();
        combine(&end, &begin, u64::saturating_sub)
    }
}

/// Merges the windows of one model.
pub(super) fn merge(windows: &[&ServerStats]) -> Result<ServerStats> {
    let Some((first, others)) = windows.split_first() else { return Ok(ServerStats::default()) };
    if others.iter().any(|window| window.composing.len() != first.composing.len()) {
        return Err(Failure::generic("Inconsistent ensemble setting detected between the trials."));
    }
    let counters = windows.iter().fold(ModelCounters::default(), |sum, window| {
        combine(&sum, &window.counters, u64::saturating_add)
    });
    let mut merged = ServerStats { counters, composing: BTreeMap::new() };
    for id in first.composing.keys() {
        let steps: Vec<&ServerStats> =
            windows.iter().filter_map(|window| window.composing.get(id)).collect();
        merged.composing.insert(id.clone(), merge(&steps)?);
    }
    Ok(merged)
}

fn combine(
    left: &ModelCounters,
    right: &ModelCounters,
    with: impl Fn(u64, u64) -> u64,
) -> ModelCounters {
    let times = |left: CountAndTime, right: CountAndTime| CountAndTime {
        count: with(left.count, right.count),
        ns: with(left.ns, right.ns),
    };
    ModelCounters {
        success: times(left.success, right.success),
        inference_count: with(left.inference_count, right.inference_count),
        execution_count: with(left.execution_count, right.execution_count),
        executed_items: with(left.executed_items, right.executed_items),
        queue: times(left.queue, right.queue),
        compute_input: times(left.compute_input, right.compute_input),
        compute_infer: times(left.compute_infer, right.compute_infer),
        compute_output: times(left.compute_output, right.compute_output),
        cache_hit: times(left.cache_hit, right.cache_hit),
        cache_miss: times(left.cache_miss, right.cache_miss),
    }
}

//! Statistics of the ready models, as clients ask for them.

use std::sync::Arc;

use galatea_telemetry::StatisticsSnapshot;
use galatea_types::{Error, Result};

use crate::served_model::ServedModel;

/// Statistics of one model version.
#[derive(Clone, Debug)]
pub struct ModelStatisticsEntry {
    /// The model's name.
    pub name: String,
    /// Its version.
    pub version: i64,
    /// Counts and times since the version was loaded.
    pub statistics: StatisticsSnapshot,
}

/// Returns the statistics of all `models`, of one model's versions, or of one version.
///
/// # Errors
/// `InvalidArg` for a model or version that is not among them, and for a name that several of them have.
pub(crate) fn select(
    mut models: Vec<Arc<ServedModel>>,
    name: Option<&str>,
    version: Option<i64>,
) -> Result<Vec<ModelStatisticsEntry>> {
    models.retain(|m| name.is_none_or(|n| *m.id.name == *n));
    if name.is_some() && models.iter().any(|m| m.id != models[0].id) {
        models.clear();
    }
    if let Some(name) = name.filter(|_| models.is_empty()) {
        return Err(Error::invalid_arg(format!("requested model '{name}' is not available")));
    }
    models.retain(|m| version.is_none_or(|v| m.version() == v));
    if let Some(name) = name.filter(|_| models.is_empty()) {
        let text = format!("requested model version is not available for model '{name}'");
        return Err(Error::invalid_arg(text));
    }
    let entry = |model: &Arc<ServedModel>| ModelStatisticsEntry {
        name: model.config.name().to_string(),
        version: model.version,
        statistics: model.statistics.snapshot(),
    };
    Ok(models.iter().map(entry).collect())
}

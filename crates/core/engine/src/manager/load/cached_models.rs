//! Which models the response cache answers for, and what tells their answers apart.

use std::{io, path::Path, sync::Arc};

use galatea_config::{ModelConfig, RawModelConfig, to_text};
use galatea_response_cache::Scope;
use galatea_scheduler::{CachedScheduler, CachedSpec, Scheduler};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, Result, product};

use super::polled_model::Loading;
use crate::{options::EngineOptions, repository, served_model::ServedModel};

/// Whether the responses of a model are kept.
pub(super) fn is_cached(options: &EngineOptions, config: &ModelConfig) -> bool {
    options.response_cache.is_some() && config.caches_responses()
}

/// Whose answers lie under the keys of a version that is about to be loaded; `None` where none are kept. `steps`: the
/// models of an ensemble's steps.
///
/// Every load has a scope of its own: what was answered before a reload is never found again, and makes room when its turn
/// comes. Where servers share the cache, the content of the files takes the place of the load.
///
/// # Errors
/// When the files have to be read and cannot be.
pub(super) fn scope(
    options: &EngineOptions,
    Loading { polled, config, version, generation, .. }: Loading<'_>,
    steps: &[Arc<ServedModel>],
) -> Result<Option<Scope>> {
    if !config.caches_responses() {
        return Ok(None);
    }
    let Some(cache) = &options.response_cache else {
        log::warn!(
            "response_cache of model '{}' has no effect: the server has no cache. Start it with \
             --cache-config=local,size=<bytes>",
            config.name()
        );
        return Ok(None);
    };
    if !cache.is_shared() {
        return Ok(Some(Scope::of([
            polled.id.namespace.as_bytes(),
            polled.id.name.as_bytes(),
            &version.to_le_bytes(),
            &generation.0.to_le_bytes(),
        ])));
    }
    let own = content(&polled.raw, polled.folder.path(), version);
    let steps = steps.iter().map(|m| content(&m.polled, m.lease.path(), m.version));
    let scopes: io::Result<Vec<Scope>> = std::iter::once(own).chain(steps).collect();
    let scopes = scopes.map_err(|error| {
        let model = &polled.id;
        Error::internal(format!(
            "failed to read the files of model '{model}', which tell its answers in the response cache: {error}"
        ))
    })?;
    let version = version.to_le_bytes();
    let head = [product::VERSION.as_bytes(), polled.id.name.as_bytes(), &version];
    Ok(Some(Scope::of(head.into_iter().chain(scopes.iter().map(Scope::as_bytes)))))
}

/// A scheduler that asks the cache before this one, where there is a scope.
pub(super) fn wrap(
    options: &EngineOptions,
    inner: Arc<dyn Scheduler>,
    scope: Option<Scope>,
    config: &Arc<ModelConfig>,
    version: i64,
    statistics: &Arc<ModelStatistics>,
) -> Arc<dyn Scheduler> {
    let Some((scope, cache)) = scope.zip(options.response_cache.clone()) else { return inner };
    Arc::new(CachedScheduler::new(CachedSpec {
        config: config.clone(),
        version,
        scope,
        cache,
        statistics: statistics.clone(),
        // Not where a test counts how many requests wait in the queue.
        joins_equal: options.hold.queued == 0,
        inner,
    }))
}

/// Of what makes up a version on every server alike: its configuration as it was read, and its files.
fn content(raw: &RawModelConfig, folder: &Path, version: i64) -> io::Result<Scope> {
    let text = to_text(raw);
    let mut parts = vec![text.into_bytes()];
    for (name, path) in repository::version_files(folder, version)? {
        parts.push(name.into_encoded_bytes());
        parts.push(Scope::of_stream(galatea_regular_files::open(&path)?)?.as_bytes().to_vec());
    }
    Ok(Scope::of(parts.iter().map(Vec::as_slice)))
}

//! Selects the models that the response cache answers for, and the scopes that separate their responses.

use std::{io, path::Path, sync::Arc};

use galatea_config::{ModelConfig, RawModelConfig, to_text};
use galatea_response_cache::Scope;
use galatea_scheduler::{CachedScheduler, CachedSpec, Scheduler};
use galatea_telemetry::ModelStatistics;
use galatea_types::{Error, Result, product};

use super::polled_model::Loading;
use crate::{options::EngineOptions, repository, served_model::ServedModel};

/// Returns true if the responses of a model are cached.
pub(super) fn is_cached(options: &EngineOptions, config: &ModelConfig) -> bool {
    options.response_cache.is_some() && config.caches_responses()
}

/// Returns the scope of a version's responses in the cache; `None` if they are not cached. `steps` are the models of an
/// ensemble's steps.
///
/// Every load has its own scope. So responses from before a reload are never found again, and are evicted in their turn. If
/// servers share the cache, the scope depends on the content of the files instead of the load.
///
/// # Errors
/// When the files must be read and cannot be.
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
            "failed to read the files of model '{model}' for its keys in the response cache: {error}"
        ))
    })?;
    let version = version.to_le_bytes();
    let head = [product::VERSION.as_bytes(), polled.id.name.as_bytes(), &version];
    Ok(Some(Scope::of(head.into_iter().chain(scopes.iter().map(Scope::as_bytes)))))
}

/// Puts the cache in front of a scheduler, if there is a scope.
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
        // Off if a test counts the requests that wait in the queue.
        joins_equal: options.hold.queued == 0,
        inner,
    }))
}

/// Returns a scope that is equal on every server with this version: from its configuration as read, and its files.
fn content(raw: &RawModelConfig, folder: &Path, version: i64) -> io::Result<Scope> {
    let text = to_text(raw);
    let mut parts = vec![text.into_bytes()];
    for (name, path) in repository::version_files(folder, version)? {
        parts.push(name.into_encoded_bytes());
        parts.push(Scope::of_stream(galatea_regular_files::open(&path)?)?.as_bytes().to_vec());
    }
    Ok(Scope::of(parts.iter().map(Vec::as_slice)))
}

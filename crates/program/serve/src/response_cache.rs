//! The response cache of the options.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use galatea_response_cache::{LocalCache, RedisCache, ResponseCache};
use galatea_triton_c::objects::metrics::export_to;
use galatea_triton_cache::LibraryCache;

use crate::options::{CacheSettings, ServeOptions};

/// Gives the engine its cache, if the options have one.
pub fn open(options: &mut ServeOptions) -> Result<()> {
    let Some(settings) = &options.response_cache else { return Ok(()) };
    let cache: Arc<dyn ResponseCache> = match settings {
        CacheSettings::Local(bytes) => {
            log::info!("Response Cache is created with size {bytes}");
            Arc::new(LocalCache::new(*bytes))
        }
        CacheSettings::Redis(settings) => {
            let cache = RedisCache::open((**settings).clone())
                .map_err(|error| anyhow!("creating server: Internal - {error}"))?;
            log::info!("Response Cache is in Redis at {}:{}", settings.host, settings.port);
            Arc::new(cache)
        }
        CacheSettings::Library(settings) => {
            // The library defines its metrics while it is opened.
            let metrics = &options.engine.custom_metrics;
            metrics.lend_cache_families();
            export_to(metrics);
            let cache = LibraryCache::open(settings).map_err(|error| {
                let code = error.code().as_str();
                anyhow!("creating server: {code} - {error}")
            })?;
            log::info!("Response Cache is '{}' in '{}'", settings.name, cache.path().display());
            Arc::new(cache)
        }
    };
    options.engine.response_cache = Some(cache);
    Ok(())
}

//! The response cache of the options.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use galatea_response_cache::{LocalCache, RedisCache, ResponseCache};

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
    };
    options.engine.response_cache = Some(cache);
    Ok(())
}

//! The front ends of cloud platforms, once the models are there.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use galatea_engine::Engine;
use galatea_http::CloudFrontEnd;

/// How the real server begins what it says of a front end that it cannot start.
const NOT_STARTED: &str = "failed to start Vertex AI service: Invalid argument - ";

/// Returns what the platform is served, with the model that was named, or the only one that is loaded.
pub fn front_end(engine: &Engine, platform: &CloudFrontEnd) -> Result<CloudFrontEnd> {
    let mut platform = platform.clone();
    if let CloudFrontEnd::VertexAi { model, .. } = &mut platform {
        let index = engine.repository_index(true)?;
        let loaded: BTreeSet<String> = index.into_iter().map(|entry| entry.name).collect();
        if model.is_empty() {
            let mut loaded = loaded.into_iter();
            match (loaded.next(), loaded.next()) {
                (Some(only), None) => *model = only,
                _ => bail!(
                    "{NOT_STARTED}Expect the model repository contains only a single model if default model is not \
                     specified"
                ),
            }
        } else if !loaded.contains(model) {
            bail!("{NOT_STARTED}Expect the default model '{model}' is loaded");
        }
    }
    Ok(platform)
}

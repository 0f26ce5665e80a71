//! The front ends of cloud platforms, which need the loaded models.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use galatea_engine::Engine;
use galatea_http::CloudFrontEnd;

/// Start of Triton's message about a front end that it cannot start.
const NOT_STARTED: &str = "failed to start Vertex AI service: Invalid argument - ";

/// Returns the platform with its model: the named one, or the only one that is loaded.
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

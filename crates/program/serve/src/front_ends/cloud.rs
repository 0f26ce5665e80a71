//! The front ends of cloud platforms, once the models are there.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use galatea_engine::Engine;
use galatea_http::{CloudFrontEnd, SageMakerModels};

use crate::options::CloudPlatform;

/// How the real server begins what it says of a front end that it cannot start.
const NOT_STARTED: &str = "failed to start Vertex AI service: Invalid argument - ";

/// Where SageMaker unpacks the models of its many-model mode.
const SAGEMAKER_MODELS: &str = "/opt/ml/models";

/// Returns what the platform is served.
pub fn front_end(engine: &Engine, platform: &CloudPlatform) -> Result<CloudFrontEnd> {
    Ok(match platform.clone() {
        CloudPlatform::SageMaker { pings_liveness, model, inference } => {
            let models = SageMakerModels::below(SAGEMAKER_MODELS);
            CloudFrontEnd::SageMaker { pings_liveness, model, inference, models }
        }
        CloudPlatform::VertexAi { predict_route, health_route, model } => {
            let model = default_model(engine, model)?;
            CloudFrontEnd::VertexAi { predict_route, health_route, model }
        }
    })
}

/// The model that was named, or the only one that is loaded.
fn default_model(engine: &Engine, named: Option<String>) -> Result<String> {
    let index = engine.repository_index(true)?;
    let loaded: BTreeSet<String> = index.into_iter().map(|entry| entry.name).collect();
    match named {
        Some(name) if loaded.contains(&name) => Ok(name),
        Some(name) => bail!("{NOT_STARTED}Expect the default model '{name}' is loaded"),
        None => match loaded.into_iter().collect::<Vec<_>>().as_slice() {
            [only] => Ok(only.clone()),
            _ => bail!(
                "{NOT_STARTED}Expect the model repository contains only a single model if default model is not specified"
            ),
        },
    }
}

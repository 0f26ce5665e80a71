//! The messages that describe the server and its models.

use galatea_config::TensorSpec;
use galatea_engine::{Engine, ServedModel};
use galatea_proto::inference::{
    ModelMetadataResponse, ServerMetadataResponse, model_metadata_response::TensorMetadata,
};
use galatea_types::product;

pub(crate) fn server_metadata(engine: &Engine) -> ServerMetadataResponse {
    ServerMetadataResponse {
        name: engine.options().server_id.clone(),
        version: engine.version().to_owned(),
        extensions: engine.extensions().iter().map(|&e| e.to_owned()).collect(),
        implementation: product::NAME_AND_VERSION.to_owned(),
    }
}

/// A version that is asked for is the only one shown.
pub(crate) fn model_metadata(model: &ServedModel, version: Option<i64>) -> ModelMetadataResponse {
    let config = model.config();
    let versions = version.map_or_else(|| model.ready_versions().to_vec(), |v| vec![v]);
    let tensors = |specs: &[TensorSpec]| -> Vec<TensorMetadata> {
        specs.iter().map(|spec| tensor_metadata(spec, config.has_batching())).collect()
    };
    let platform = if config.platform().is_empty() { config.backend() } else { config.platform() };
    ModelMetadataResponse {
        name: config.name().as_ref().to_owned(),
        versions: versions.iter().map(i64::to_string).collect(),
        platform: platform.to_owned(),
        inputs: tensors(config.inputs()),
        outputs: tensors(config.outputs()),
    }
}

/// Clients see the batch dimension, as one of any size.
fn tensor_metadata(spec: &TensorSpec, has_batching: bool) -> TensorMetadata {
    let shape = if has_batching { spec.dims.with_leading(-1) } else { spec.dims.clone() };
    TensorMetadata {
        name: spec.name.as_ref().to_owned(),
        datatype: spec.data_type.protocol_name().to_owned(),
        shape: shape.to_vec(),
    }
}

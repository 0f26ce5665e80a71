//! A model with one input of variable size, for the request decoders.

use galatea_config::{Format, ModelConfig, Scheduling, TensorSpec, VersionPolicy};
use galatea_types::{DataType, Shape};

pub fn config() -> ModelConfig {
    let input = TensorSpec {
        name: "I".into(),
        data_type: DataType::Fp32,
        dims: Shape::from([2, -1]),
        reshape: None,
        format: Format::None,
        is_optional: false,
        allows_ragged_batch: false,
        label_filename: None,
    };
    ModelConfig {
        name: "m".into(),
        platform: String::new(),
        backend: "identity".to_owned(),
        version_policy: VersionPolicy::Latest(1),
        max_batch_size: 4,
        inputs: vec![input],
        outputs: Vec::new(),
        instance_groups: Vec::new(),
        default_model_filename: String::new(),
        scheduling: Scheduling::Direct,
        parameters: Default::default(),
        metric_tags: Default::default(),
        is_decoupled: false,
        raw: Default::default(),
    }
}

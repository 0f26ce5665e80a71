//! A model with one input of variable size, for the request decoders.

use galatea_config::{ModelConfig, testing};

pub fn config() -> ModelConfig {
    testing::model_config(
        "backend: 'identity' max_batch_size: 4
         input { name: 'I' data_type: TYPE_FP32 dims: [ 2, -1 ] }",
    )
}

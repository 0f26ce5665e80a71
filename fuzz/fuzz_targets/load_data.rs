//! No bytes make the reader of the load tool's data files panic.
#![no_main]

use std::sync::LazyLock;

use galatea_perf_load::data::read_json;
use galatea_perf_types::model::{InputInfo, ModelInfo, OutputInfo, SchedulingKind};
use galatea_types::DataType;
use libfuzzer_sys::fuzz_target;

/// One input and output of each type, of open shape. The names are one letter long, so that they are soon found.
static MODEL: LazyLock<ModelInfo> = LazyLock::new(|| {
    let names = || ('A'..).map(String::from).zip(DataType::ALL);
    let inputs = names().map(|(name, data_type)| InputInfo {
        name,
        data_type,
        shape: vec![-1],
        is_shape_tensor: false,
        optional: true,
    });
    let outputs = names().map(|(name, data_type)| OutputInfo { name, data_type, shape: vec![-1] });
    ModelInfo {
        name: "m".to_owned(),
        version: String::new(),
        max_batch_size: 4,
        scheduling: SchedulingKind::None,
        decoupled: false,
        response_cache: false,
        top_level_response_cache: false,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        composing: Vec::new(),
    }
});

fuzz_target!(|json: &[u8]| {
    if let Ok(data) = read_json(json, &MODEL) {
        assert!((0..data.stream_count()).all(|stream| data.step_count(stream) > 0));
    }
});

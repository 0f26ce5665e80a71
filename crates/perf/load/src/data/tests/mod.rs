//! Models, settings and a console for the tests.

use galatea_perf_types::{
    console::Console,
    model::{InputInfo, ModelInfo, OutputInfo, SchedulingKind},
    settings::{DataSettings, DataSource, Settings},
};
use galatea_types::DataType;

pub(super) fn input(name: &str, data_type: DataType, shape: &[i64]) -> InputInfo {
    InputInfo {
        name: name.to_owned(),
        data_type,
        shape: shape.to_vec(),
        is_shape_tensor: false,
        optional: false,
    }
}

/// A batching model with these inputs, and an output for each: `INPUT0` and `OUTPUT0` and so on.
pub(super) fn model(tensors: &[(DataType, &[i64])]) -> ModelInfo {
    let tensors = || tensors.iter().enumerate();
    ModelInfo {
        name: "m".to_owned(),
        version: String::new(),
        max_batch_size: 8,
        scheduling: SchedulingKind::None,
        decoupled: false,
        response_cache: false,
        top_level_response_cache: false,
        inputs: tensors()
            .map(|(index, &(data_type, shape))| input(&format!("INPUT{index}"), data_type, shape))
            .collect(),
        outputs: tensors()
            .map(|(index, &(data_type, shape))| OutputInfo {
                name: format!("OUTPUT{index}"),
                data_type,
                shape: shape.to_vec(),
            })
            .collect(),
        composing: Vec::new(),
    }
}

pub(super) fn settings(source: DataSource) -> Settings {
    Settings { data: data_settings(source), ..Settings::defaults("m") }
}

pub(super) fn data_settings(source: DataSource) -> DataSettings {
    DataSettings { source, ..DataSettings::default() }
}

#[derive(Default)]
pub(super) struct Recorder {
    pub out: String,
    pub err: String,
}

impl Console for Recorder {
    fn out(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn err(&mut self, text: &str) {
        self.err.push_str(text);
    }
}

/// Runs what waits for nothing but closures of the test.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

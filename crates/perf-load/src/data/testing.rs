//! Models, settings and a console for the tests.

use galatea_client::{Compression, Protocol, TensorFormat};
use galatea_perf_types::{
    console::Console,
    model::{InputInfo, ModelInfo, OutputInfo, SchedulingKind},
    settings::{
        Calls, DataSettings, DataSource, Load, Range, Search, SequenceSettings, Settings,
        SharedMemory, TraceSettings, Verbosity, Window,
    },
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
    Settings {
        model_name: "m".to_owned(),
        model_version: String::new(),
        url: "localhost:8000".to_owned(),
        protocol: Protocol::Http,
        verbosity: Verbosity::Quiet,
        batch_size: 1,
        load: Load::Concurrency(Range { start: 1, end: 1, step: 1 }),
        search: Search::Linear,
        latency_limit: None,
        window: Window::Time(5000),
        stability: 0.1,
        max_trials: 10,
        percentile: None,
        request_count: None,
        warmup_request_count: 0,
        max_threads: None,
        calls: Calls { asynchronous: false, forced_sync: false, streaming: false },
        sequences: SequenceSettings {
            count: 4,
            length: 20,
            length_specified: false,
            length_variation: 20.0,
            first_id: 1,
            id_count: None,
            serial: false,
        },
        data: data_settings(source),
        shared_memory: SharedMemory::None,
        output_region_size: 102_400,
        request_parameters: Vec::new(),
        headers: Vec::new(),
        compression: Compression::None,
        tls: None,
        bls_composing_models: Vec::new(),
        metrics: None,
        trace: TraceSettings::default(),
        csv_file: None,
        verbose_csv: false,
        profile_export_file: None,
        json_file: None,
        html_file: None,
        label: None,
        compare: Vec::new(),
    }
}

pub(super) fn data_settings(source: DataSource) -> DataSettings {
    DataSettings {
        source,
        shapes: Default::default(),
        string_length: 128,
        string_data: None,
        input_format: TensorFormat::Binary,
        output_format: TensorFormat::Binary,
    }
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

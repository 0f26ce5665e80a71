//! The options as given, before they are checked against each other.

use std::{collections::BTreeMap, path::PathBuf};

use galatea_client::{Compression, Protocol, TensorFormat};
use galatea_perf_types::settings::{
    Distribution, Range, Search, SequenceSettings, Settings, SharedMemory, Window,
};
use galatea_types::ParameterValue;

pub struct Given {
    /// For the console, in order; emptied as they are reported.
    pub warnings: Vec<String>,
    /// The first word that is no option.
    pub stray: Option<String>,
    pub model_name: String,
    pub model_version: String,
    pub url: Option<String>,
    pub protocol: Protocol,
    pub verbosity: u8,
    pub batch_size: u64,
    pub concurrency: Option<Range<u64>>,
    pub old: OldOptions,
    pub rate: Option<Range<f64>>,
    pub periodic: Option<Range<u64>>,
    pub period: u64,
    pub intervals_file: Option<PathBuf>,
    pub distribution: Distribution,
    pub search: Search,
    /// Milliseconds; zero: no limit.
    pub latency_limit: u64,
    pub counts_windows: bool,
    /// Milliseconds.
    pub window: u64,
    pub window_count: u64,
    pub stability: f64,
    pub max_trials: u32,
    /// -1: the average.
    pub percentile: i64,
    pub request_count: u64,
    pub warmup_request_count: u64,
    pub max_threads: Option<usize>,
    pub asynchronous: bool,
    pub forced_sync: bool,
    pub streaming: bool,
    pub sequences: SequenceSettings,
    pub zero_input: bool,
    pub user_data: Vec<PathBuf>,
    pub shapes: BTreeMap<String, Vec<i64>>,
    pub string_length: usize,
    pub string_data: Option<String>,
    pub input_format: TensorFormat,
    pub output_format: TensorFormat,
    pub shared_memory: SharedMemory,
    pub output_region_size: usize,
    pub request_parameters: Vec<(String, ParameterValue)>,
    pub headers: Vec<(String, String)>,
    pub compression: Option<Compression>,
    pub tls: GivenTls,
    pub bls_composing_models: Vec<(String, String)>,
    pub collects_metrics: bool,
    pub metrics_url: Option<String>,
    /// Milliseconds.
    pub metrics_interval: Option<u64>,
    pub trace: BTreeMap<String, Vec<String>>,
    pub csv_file: Option<PathBuf>,
    pub verbose_csv: bool,
    pub profile_export_file: Option<PathBuf>,
    pub json_file: Option<PathBuf>,
    pub html_file: Option<PathBuf>,
    pub compare: Vec<PathBuf>,
    pub label: Option<String>,
}

/// `-t`, `-c` and `-d`, from before there were ranges.
#[derive(Default)]
pub struct OldOptions {
    pub are_used: bool,
    pub concurrency: Option<u64>,
    pub max_concurrency: u64,
    pub is_dynamic: bool,
}

/// Options of both protocols; only those of the one in use count.
#[derive(Default)]
pub struct GivenTls {
    pub grpc: bool,
    pub grpc_roots: Option<PathBuf>,
    pub grpc_private_key: Option<PathBuf>,
    pub grpc_certificate_chain: Option<PathBuf>,
    pub https_skips_peer: bool,
    pub https_skips_host: bool,
    pub https_roots: Option<PathBuf>,
    pub https_certificate: Option<PathBuf>,
    pub https_certificate_is_der: bool,
    pub https_private_key: Option<PathBuf>,
    pub https_private_key_is_der: bool,
}

impl Given {
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// The range of the concurrency mode, whether it is in use or not.
    pub fn concurrency_range(&self) -> Range<u64> {
        let old = &self.old;
        let end = if old.is_dynamic { old.max_concurrency } else { 1 };
        let by_old = Range { start: old.concurrency.unwrap_or(1), end, step: 1 };
        self.concurrency.unwrap_or(by_old)
    }

    /// The range of the rate mode, whether it is in use or not.
    pub fn rate_range(&self) -> Range<f64> {
        self.rate.unwrap_or(Range { start: 1.0, end: 1.0, step: 1.0 })
    }
}

/// The defaults, as [`Settings::defaults`] has it.
impl Default for Given {
    fn default() -> Self {
        let settings = Settings::defaults("");
        let data = settings.data;
        let (Window::Time(window) | Window::Count(window)) = settings.window;
        Self {
            stray: None,
            warnings: Vec::new(),
            model_name: settings.model_name,
            model_version: settings.model_version,
            url: None,
            protocol: settings.protocol,
            verbosity: 0,
            batch_size: settings.batch_size,
            concurrency: None,
            old: OldOptions::default(),
            rate: None,
            periodic: None,
            period: 10,
            intervals_file: None,
            distribution: Distribution::Constant,
            search: settings.search,
            latency_limit: 0,
            counts_windows: false,
            window,
            window_count: 50,
            stability: settings.stability,
            max_trials: settings.max_trials,
            percentile: -1,
            request_count: 0,
            warmup_request_count: settings.warmup_request_count,
            max_threads: None,
            asynchronous: false,
            forced_sync: false,
            streaming: false,
            sequences: settings.sequences,
            zero_input: false,
            user_data: Vec::new(),
            shapes: data.shapes,
            string_length: data.string_length,
            string_data: data.string_data,
            input_format: data.input_format,
            output_format: data.output_format,
            shared_memory: settings.shared_memory,
            output_region_size: settings.output_region_size,
            request_parameters: Vec::new(),
            headers: Vec::new(),
            compression: None,
            tls: GivenTls::default(),
            bls_composing_models: Vec::new(),
            collects_metrics: false,
            metrics_url: None,
            metrics_interval: None,
            trace: BTreeMap::new(),
            csv_file: None,
            verbose_csv: false,
            profile_export_file: None,
            json_file: None,
            html_file: None,
            compare: Vec::new(),
            label: None,
        }
    }
}

//! What the user requested, after every check that needs no server.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use galatea_client::{Compression, Protocol, TensorFormat, Tls};
use galatea_types::ParameterValue;

use crate::model::ModelInfo;

/// perf_analyzer's default of `--max-threads` in the concurrency modes; it also decides how many gRPC streams there
/// are.
pub const DEFAULT_THREADS: usize = 16;

/// perf_analyzer's default of `--max-threads` in the rate modes.
pub const DEFAULT_RATE_THREADS: usize = 4;

/// A checked command line. Made only by `galatea_perf::options`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model to measure.
    pub model_name: String,
    /// Empty: the latest.
    pub model_version: String,
    /// `host:port`, with scheme and path allowed for HTTP.
    pub url: String,
    /// The protocol of all calls.
    pub protocol: Protocol,
    /// How detailed the report is.
    pub verbosity: Verbosity,
    /// Batch size of every request.
    pub batch_size: u64,
    /// What is sent and when.
    pub load: Load,
    /// Which points of a range are measured.
    pub search: Search,
    /// Milliseconds; `None`: no limit.
    pub latency_limit: Option<u64>,
    /// How long one measurement lasts.
    pub window: Window,
    /// Allowed spread over the last windows, as a ratio: 0.1 for 10 %.
    pub stability: f64,
    /// Windows after which a point that is not stable is given up.
    pub max_trials: u32,
    /// The latency that decides about stability; `None`: the average.
    pub percentile: Option<u8>,
    /// A run of exactly so many requests, in one window.
    pub request_count: Option<u64>,
    /// Requests before the measurement.
    pub warmup_request_count: u64,
    /// As requested; `None`: the default of the load mode.
    pub max_threads: Option<usize>,
    /// How requests are sent.
    pub calls: Calls,
    /// Sequences, for models that need them.
    pub sequences: SequenceSettings,
    /// What requests hold.
    pub data: DataSettings,
    /// Whether tensors travel through shared memory.
    pub shared_memory: SharedMemory,
    /// Bytes for each output, batch element included only once (the region is this times the batch size).
    pub output_region_size: usize,
    /// Parameters of every request: name and value (gRPC only).
    pub request_parameters: Vec<(String, ParameterValue)>,
    /// Headers of every request, metadata over gRPC.
    pub headers: Vec<(String, String)>,
    /// Compression of requests (gRPC only).
    pub compression: Compression,
    /// For the protocol in use.
    pub tls: Option<Tls>,
    /// Models a BLS model calls: name and version, empty for any.
    pub bls_composing_models: Vec<(String, String)>,
    /// GPU metrics to read; `None`: none.
    pub metrics: Option<MetricsSettings>,
    /// Trace settings to change on the server.
    pub trace: TraceSettings,
    /// `-f`: the results as a table.
    pub csv_file: Option<PathBuf>,
    /// `--verbose-csv`: more columns in that table.
    pub verbose_csv: bool,
    /// `--profile-export-file`: every request as JSON.
    pub profile_export_file: Option<PathBuf>,
    /// Ours: a summary of everything measured (`-` is stdout, and then the report goes to stderr).
    pub json_file: Option<PathBuf>,
    /// Ours: a self-contained page.
    pub html_file: Option<PathBuf>,
    /// Ours: summaries of other runs to lay over this one in the page.
    pub compare: Vec<PathBuf>,
    /// Ours: the run's name in summaries and comparisons; `None`: made from the server's name and version.
    pub label: Option<String>,
}

impl Default for Settings {
    /// What a command line means that has no option.
    fn default() -> Self {
        Self {
            model_name: String::new(),
            model_version: String::new(),
            url: format!("localhost:{}", Protocol::Http.default_port()),
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
            calls: Calls::default(),
            sequences: SequenceSettings::default(),
            data: DataSettings::default(),
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
            compare: Vec::new(),
            label: None,
        }
    }
}

impl Settings {
    /// What a command line means that names nothing but a model.
    pub fn defaults(model_name: &str) -> Self {
        Self { model_name: model_name.to_owned(), ..Self::default() }
    }

    /// Whether requests are asynchronous, which those of sequences are unless it was ruled out.
    pub fn is_asynchronous(&self, model: &ModelInfo) -> bool {
        let Calls { asynchronous, forced_sync, streaming } = self.calls;
        asynchronous || streaming || (model.is_sequence() && !forced_sync)
    }
}

/// How detailed the report is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The result of each point.
    #[default]
    Quiet,
    /// `-v`
    Verbose,
    /// `-v -v`
    Extra,
}

/// `start:end:step`; `end` is included. `end` zero means: until the latency limit is met.
/// An `end` that was not given is 1, even below `start`: then `start` alone is measured and the report has no limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<T> {
    /// The first value.
    pub start: T,
    /// The last value.
    pub end: T,
    /// The distance of values; in a binary search the precision.
    pub step: T,
}

/// What is sent and when.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// So many requests are always in flight.
    Concurrency(Range<u64>),
    /// Requests per second, sent on schedule whatever the server does.
    RequestRate {
        /// Requests per second.
        range: Range<f64>,
        /// The gaps between them.
        distribution: Distribution,
    },
    /// Pauses between requests, repeated. The file is read by the options.
    CustomIntervals(Vec<Duration>),
    /// Concurrency grows by `step` when every request of the last step has had `period` responses.
    PeriodicConcurrency {
        /// Requests in flight: at first, at last, and how many are added at a time.
        range: Range<u64>,
        /// Responses after which a request counts for its step.
        period: u64,
    },
}

/// The gaps between requests of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All the same.
    #[default]
    Constant,
    /// Exponential, like those of independent users.
    Poisson,
}

/// Which points of a range are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Each, in steps, until one is over the latency limit or not stable.
    Linear,
    /// Those that narrow down where the latency limit is met.
    Binary,
}

/// How long one measurement lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Milliseconds.
    Time(u64),
    /// At least so many requests.
    Count(u64),
}

/// How requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// `--async` or `--streaming`. A sequence model makes it true later, unless `forced_sync`.
    pub asynchronous: bool,
    /// `--sync`: blocking calls for sequence models, too.
    pub forced_sync: bool,
    /// `--streaming`: over one gRPC stream per worker.
    pub streaming: bool,
}

/// Sequences of requests, for models that need them.
#[derive(Clone, Copy, Debug)]
pub struct SequenceSettings {
    /// Concurrent sequences in the rate modes.
    pub count: u64,
    /// Requests of a sequence, on average.
    pub length: u64,
    /// Whether `length` was requested; otherwise user data decides it.
    pub length_specified: bool,
    /// Percent.
    pub length_variation: f64,
    /// The first correlation id.
    pub first_id: u64,
    /// How many ids there are; `None`: no bound.
    pub id_count: Option<u64>,
    /// One request of a sequence at a time, in the rate modes.
    pub serial: bool,
}

impl Default for SequenceSettings {
    fn default() -> Self {
        Self {
            count: 4,
            length: 20,
            length_specified: false,
            length_variation: 20.0,
            first_id: 1,
            id_count: None,
            serial: false,
        }
    }
}

/// What requests hold.
#[derive(Clone, Debug)]
pub struct DataSettings {
    /// Where the elements come from.
    pub source: DataSource,
    /// `--shape`, without the batch dimension.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// Length of random strings, in bytes.
    pub string_length: usize,
    /// The string to send instead of random ones.
    pub string_data: Option<String>,
    /// How inputs travel over HTTP.
    pub input_format: TensorFormat,
    /// How outputs travel over HTTP.
    pub output_format: TensorFormat,
}

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            source: DataSource::Random,
            shapes: BTreeMap::new(),
            string_length: 128,
            string_data: None,
            input_format: TensorFormat::Binary,
            output_format: TensorFormat::Binary,
        }
    }
}

/// Where the elements of inputs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// All elements are zero.
    Zero,
    /// Random, from a fixed seed.
    Random,
    /// One directory, or JSON files whose streams follow each other.
    Files(Vec<PathBuf>),
}

/// Whether tensors travel through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// In requests and responses.
    None,
    /// Through POSIX shared memory that the server maps.
    System,
}

/// The server's metrics endpoint.
#[derive(Clone, Debug)]
pub struct MetricsSettings {
    /// With or without `http://`.
    pub url: String,
    /// How often it is read.
    pub interval: Duration,
}

/// The server's trace settings as requested; empty: the server's are left alone.
#[derive(Clone, Debug, Default)]
pub struct TraceSettings {
    /// By name, as the trace extension has them; each with its values.
    pub fields: BTreeMap<String, Vec<String>>,
}

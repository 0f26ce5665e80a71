//! The user's settings, after every check that needs no server.

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
    /// `host:port`, with scheme and path allowed for HTTP, or `unix:PATH`.
    pub url: String,
    /// The protocol of all calls.
    pub protocol: Protocol,
    /// Level of detail of the report.
    pub verbosity: Verbosity,
    /// Batch size of every request.
    pub batch_size: u64,
    /// The load: what is sent, and at which times.
    pub load: Load,
    /// The points of a range that are measured.
    pub search: Search,
    /// Latency limit in milliseconds; `None`: no limit.
    pub latency_limit: Option<u64>,
    /// Length of one measurement.
    pub window: Window,
    /// Allowed spread over the last windows, as a ratio: 0.1 for 10 %.
    pub stability: f64,
    /// Number of windows after which the tool gives up a point that is not stable.
    pub max_trials: u32,
    /// The latency that decides about stability; `None`: the average.
    pub percentile: Option<u8>,
    /// Number of requests of the run, all in one window; `None`: no such bound.
    pub request_count: Option<u64>,
    /// Requests before the measurement.
    pub warmup_request_count: u64,
    /// The requested number; `None`: the default of the load mode.
    pub max_threads: Option<usize>,
    /// The form of calls.
    pub calls: Calls,
    /// Sequences, for models that need them.
    pub sequences: SequenceSettings,
    /// The data of requests.
    pub data: DataSettings,
    /// The use of shared memory for tensors.
    pub shared_memory: SharedMemory,
    /// The Unix socket of the server's HTTP port that takes descriptors; `None`: that of `url`.
    pub shared_memory_url: Option<String>,
    /// Bytes for each output, batch element included only once (the region is this times the batch size).
    pub output_region_size: usize,
    /// Parameters of every request: name and value (gRPC only).
    pub request_parameters: Vec<(String, ParameterValue)>,
    /// Headers of every request, metadata over gRPC.
    pub headers: Vec<(String, String)>,
    /// Compression of requests (gRPC only).
    pub compression: Compression,
    /// TLS settings of the protocol in use.
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
    /// Not in perf_analyzer: a summary of everything measured (`-` is stdout, and then the report goes to stderr).
    pub json_file: Option<PathBuf>,
    /// Not in perf_analyzer: a self-contained page.
    pub html_file: Option<PathBuf>,
    /// Not in perf_analyzer: summaries of other runs to compare with this one in the page.
    pub compare: Vec<PathBuf>,
    /// Not in perf_analyzer: the run's name in summaries and comparisons; `None`: made from the server's name and version.
    pub label: Option<String>,
}

impl Default for Settings {
    /// The settings of a command line without options.
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
            shared_memory_url: None,
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
    /// The settings of a command line that names only a model.
    pub fn defaults(model_name: &str) -> Self {
        Self { model_name: model_name.to_owned(), ..Self::default() }
    }

    /// Returns true if requests are asynchronous. Those of sequences are, unless `--sync` was given.
    pub fn is_asynchronous(&self, model: &ModelInfo) -> bool {
        let Calls { asynchronous, forced_sync, streaming } = self.calls;
        asynchronous || streaming || (model.is_sequence() && !forced_sync)
    }
}

/// Level of detail of the report.
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

/// The load: what is sent, and at which times.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// This many requests are always in flight.
    Concurrency(Range<u64>),
    /// Requests are sent on schedule, however slowly the server answers.
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
        /// Requests in flight: the first number, the last, and the step between two.
        range: Range<u64>,
        /// Number of responses after which a request counts for its step.
        period: u64,
    },
}

/// The gaps between requests in the rate modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All the same.
    #[default]
    Constant,
    /// Exponential, like those of independent users.
    Poisson,
}

/// The points of a range that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Every point, in steps, until one exceeds the latency limit or is not stable.
    Linear,
    /// A binary search for the point at which the latency limit is met.
    Binary,
}

/// Length of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A time in milliseconds.
    Time(u64),
    /// A number of requests, at least.
    Count(u64),
}

/// The form of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// `--async` or `--streaming`. A sequence model makes it true later, unless `forced_sync`.
    pub asynchronous: bool,
    /// `--sync`: sequence models get blocking calls too.
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
    /// `length` was requested; otherwise user data decides it.
    pub length_specified: bool,
    /// Variation of the length, in percent.
    pub length_variation: f64,
    /// The first correlation id.
    pub first_id: u64,
    /// Number of ids; `None`: no bound.
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

/// The data of requests.
#[derive(Clone, Debug)]
pub struct DataSettings {
    /// The source of the elements.
    pub source: DataSource,
    /// `--shape`, without the batch dimension.
    pub shapes: BTreeMap<String, Vec<i64>>,
    /// Length of random strings, in bytes.
    pub string_length: usize,
    /// The string to send instead of random ones.
    pub string_data: Option<String>,
    /// Encoding of inputs over HTTP.
    pub input_format: TensorFormat,
    /// Encoding of outputs over HTTP.
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

/// The source of the elements of inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// All elements are zero.
    Zero,
    /// Random, from a fixed seed.
    Random,
    /// One directory, or JSON files whose streams follow each other.
    Files(Vec<PathBuf>),
}

/// The use of shared memory for tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedMemory {
    /// Tensors travel in requests and responses.
    None,
    /// Tensors travel through POSIX shared memory that the server maps.
    System,
    /// Tensors travel through memory of this program without a name, whose descriptors are passed to the server.
    Memfd,
}

impl SharedMemory {
    /// Returns the word of the option.
    pub fn name(self) -> &'static str {
        match self {
            SharedMemory::None => "none",
            SharedMemory::System => "system",
            SharedMemory::Memfd => "memfd",
        }
    }
}

/// The server's metrics endpoint.
#[derive(Clone, Debug)]
pub struct MetricsSettings {
    /// The endpoint's URL, with or without `http://`.
    pub url: String,
    /// Time between two reads.
    pub interval: Duration,
}

/// The requested trace settings of the server; empty: they are not changed.
#[derive(Clone, Debug, Default)]
pub struct TraceSettings {
    /// Values by setting, under the names of the trace extension.
    pub fields: BTreeMap<String, Vec<String>>,
}

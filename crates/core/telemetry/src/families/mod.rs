//! The table of all families of the server itself. The metrics page, `docs/metrics.md` and the tests are made from it.
//!
//! Names and help texts of the `nv_` families are Triton's: dashboards and their tests compare them. The `galatea_` families
//! follow the conventions of Prometheus: base units, the unit at the end, `_total` for counters.

mod family;

pub use self::family::{Family, Kind};

const COUNTER_LATENCIES: &str = "unless `--metrics-config=counter_latencies=false`";
const HISTOGRAM_LATENCIES: &str = "with `--metrics-config=histogram_latencies=true`";
const SUMMARY_LATENCIES: &str = "with `--metrics-config=summary_latencies=true`";
const GPU_METRICS: &str = "if there are NVIDIA GPUs, unless `--allow-gpu-metrics=false`";
const CPU_METRICS: &str = "unless `--allow-cpu-metrics=false`";
const GPU: &[&str] = &["gpu_uuid"];
const CACHED_MODELS: &str =
    "for models with `response_cache`, if the server has a cache (`--cache-config`)";
const REDIS_CACHE: &str = "with `--cache-config=redis,...`";
const LOCAL_CACHE: &str = "with `--cache-config=local,size=...`";

const PER_MODEL: &[&str] = &["model", "version"];
const WITH_ENVIRONMENTS: &str = "once a Python model has asked for an environment";

/// Defines a constant for each family, and one for each section: the families in the order of the page.
macro_rules! families {
    ($($section:ident { $($vis:vis $name:ident = $make:ident($metric:literal, $help:literal)
        $(.$change:ident($($argument:expr)?))*;)* })*) => {$(
        $(#[doc = $help] $vis const $name: Family = $make($metric, $help)$(.$change($($argument)?))*;)*
        pub(crate) const $section: &[Family] = &[$($name),*];
    )*};
}

/// Defines a constant for each list of families that differ only in what they measure.
macro_rules! lists {
    ($(#[$doc:meta] $vis:vis $name:ident: $count:literal $make:ident { $($metric:literal $help:literal;)* })*) => {
        $(#[$doc] $vis const $name: [Family; $count] = [$($make($metric, $help)),*];)*
    };
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, help, labels: &[], shown: "" }
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { kind: Kind::Gauge, ..counter(name, help) }
}

const fn latency_counter(name: &'static str, help: &'static str) -> Family {
    counter(name, help).per_model().shown(COUNTER_LATENCIES)
}

const fn cache_counter(name: &'static str, help: &'static str) -> Family {
    counter(name, help).per_model().shown(CACHED_MODELS)
}

/// Makes a gauge, as Triton's cache families are.
const fn cache_gauge(name: &'static str, help: &'static str) -> Family {
    gauge(name, help).shown(LOCAL_CACHE)
}

const fn gpu_gauge(name: &'static str, help: &'static str) -> Family {
    gauge(name, help).labels(GPU).shown(GPU_METRICS)
}

const fn summary(name: &'static str, help: &'static str) -> Family {
    let family = Family { kind: Kind::Summary, ..counter(name, help) };
    family.labels(&["model", "version", "quantile"]).shown(SUMMARY_LATENCIES)
}

const fn histogram(name: &'static str, help: &'static str) -> Family {
    let family = Family { kind: Kind::Histogram, ..counter(name, help) };
    family.labels(&["model", "version", "le"]).shown(HISTOGRAM_LATENCIES)
}

impl Family {
    const fn labels(self, labels: &'static [&'static str]) -> Self {
        Self { labels, ..self }
    }

    const fn per_model(self) -> Self {
        self.labels(PER_MODEL)
    }

    const fn shown(self, shown: &'static str) -> Self {
        Self { shown, ..self }
    }
}

families! {
    MODELS {
        pub(crate) SUCCESS = counter("nv_inference_request_success",
            "Number of successful inference requests, all batch sizes").per_model();
        pub(crate) FAILURE = counter("nv_inference_request_failure",
            "Number of failed inference requests, all batch sizes").labels(&["model", "reason", "version"]);
        pub(crate) INFERENCES = counter("nv_inference_count",
            "Number of inferences performed (does not include cached requests)").per_model();
        pub(crate) EXECUTIONS = counter("nv_inference_exec_count",
            "Number of model executions performed (does not include cached requests)").per_model();
        pub(crate) PENDING = gauge("nv_inference_pending_request_count",
            "Instantaneous number of pending requests awaiting execution per-model.").per_model();
        pub(crate) LOAD_DURATION = gauge("nv_model_load_duration_secs", "Model load time in seconds").per_model();
    }
    CACHE {
        pub(crate) CACHE_UTILIZATION = cache_gauge("nv_cache_util", "Cache utilization [0.0 - 1.0]");
        pub(crate) CACHE_ENTRIES = cache_gauge("nv_cache_num_entries", "Number of responses stored in response cache");
        pub(crate) CACHE_HITS = cache_gauge("nv_cache_num_hits", "Number of cache hits in response cache");
        pub(crate) CACHE_MISSES = cache_gauge("nv_cache_num_misses", "Number of cache misses in response cache");
        pub(crate) CACHE_LOOKUPS = cache_gauge("nv_cache_num_lookups", "Number of cache lookups in response cache");
        pub(crate) CACHE_EVICTIONS = cache_gauge("nv_cache_num_evictions", "Number of cache evictions in response cache");
        pub(crate) CACHE_LOOKUP_TIME = cache_gauge("nv_cache_lookup_duration",
            "Total cache lookup duration (hit and miss), in microseconds");
        pub(crate) CACHE_INSERTION_TIME = cache_gauge("nv_cache_insertion_duration",
            "Total cache insertion duration, in microseconds");
    }
    FIRST_RESPONSES {
        pub FIRST_RESPONSE_HISTOGRAM = histogram("nv_inference_first_response_histogram_ms",
            "Duration from request to first response in milliseconds");
    }
    BATCH_SIZES {
        pub BATCH_SIZE_HISTOGRAM = histogram("galatea_inference_batch_size",
            "Number of items that were executed together");
    }
    OBSTACLES {
        pub(crate) REFUSED = counter("galatea_inference_requests_refused_total",
            "Requests to a model that the server refused to execute, by reason").labels(&["model", "reason", "version"]);
        pub(crate) IN_FLIGHT = gauge("galatea_inference_requests_in_flight",
            "Requests to a model that wait or are executed now").per_model();
        pub(crate) INSTANCES = gauge("galatea_model_instances", "Instances of a model").per_model();
        pub(crate) INSTANCES_WORKING = gauge("galatea_model_instances_working",
            "Instances of a model that work. The server is restarting the others").per_model();
        pub(crate) RESTARTS = counter("galatea_model_instance_restarts_total",
            "Restarts of instances of a model that had stopped working").per_model();
        pub(crate) EXECUTIONS_ON_CONNECTION_THREADS = counter("galatea_executions_on_connection_threads_total",
            "Executions of a model by the thread that received the request, a part of all executions. Short \
             executions are cheaper there than in the thread of an instance").per_model();
    }
    BATCH_DELAYS {
        pub(crate) BATCH_DELAY = gauge("galatea_batch_delay_duration_seconds",
            "Average time that the last batches of a model waited for more requests, for models with `batch_delay` \
             auto").per_model().shown("for models with `batch_delay` auto");
    }
    ADMISSIONS {
        pub(crate) ADMISSION_LIMIT = gauge("galatea_admission_limit",
            "Requests to a model that may be in progress while it is overloaded, or items for a model that batches, with \
             --admission=on").per_model().shown("with `--admission=on`");
    }
    LOADS {
        pub(crate) MODEL_LOAD = gauge("galatea_model_load",
            "Load of the instances of a model in the last second: the share of time they worked, plus the waiting \
             requests divided by the requests that the instances take at once. 1: all instances work and no request \
             waits").per_model();
        pub(crate) LOAD = gauge("galatea_load",
            "The highest galatea_model_load of all models, for an autoscaler");
        pub(crate) WAITING = gauge("galatea_requests_waiting",
            "Requests in the queues of all models, for a balancer that chooses between servers");
        pub(crate) RUNNING = gauge("galatea_requests_running",
            "Requests that the instances of all models execute now");
    }
    MEMORY {
        pub(crate) MEMORY_LIMIT = gauge("galatea_memory_budget_limit_bytes",
            "Memory that all requests and responses together may take, in bytes");
        pub(crate) MEMORY_USED = gauge("galatea_memory_budget_used_bytes",
            "Memory that requests and responses take, in bytes");
        pub(crate) MEMORY_REFUSED = counter("galatea_memory_budget_refused_total",
            "Requests that the server refused because the memory budget was used up");
        pub(crate) STATES_LIMIT = gauge("galatea_sequence_states_limit_bytes",
            "Memory that the states of all sequences together may take, a part of the memory budget, in bytes");
        pub(crate) STATES_USED = gauge("galatea_sequence_states_used_bytes",
            "Memory that the states of sequences take, a part of the used memory budget, in bytes");
        pub(crate) STATES_REFUSED = counter("galatea_sequence_states_refused_total",
            "Requests that failed because there was no memory for the state of their sequence");
        pub(crate) SEQUENCES_GAVE_WAY = counter("galatea_sequences_gave_way_total",
            "Idle sequences that the server ended because the states of others needed their memory");
    }
    FIGURES {
        pub MODEL_READY = gauge("galatea_model_ready",
            "1: the version answers requests; 0: it is loading or failed to load. A version that was unloaded on \
             purpose has no sample. A model whose configuration cannot be read has an empty version").per_model();
        pub CONNECTIONS = gauge("galatea_connections_open", "Open connections of all front ends");
        pub CONNECTIONS_LIMIT = gauge("galatea_connections_limit", "Connections that may be open: --max-connections");
        pub CONNECTIONS_REFUSED = counter("galatea_connections_refused_total",
            "Connections that the server refused because it was at the limit and none was idle");
        pub CONNECTIONS_CLOSED = counter("galatea_connections_closed_total",
            "Connections that the server closed, by reason").labels(&["reason"]);
        pub REQUESTS_REFUSED = counter("galatea_requests_refused_total",
            "Requests that the server refused before they reached a model, by reason. Those refused because memory \
             ran out count with the memory budget").labels(&["reason"]);
        pub LONG_REQUESTS_WAITING = gauge("galatea_long_requests_waiting",
            "Long bodies and responses that wait for a thread that decodes or encodes them");
        pub CONTROL_RUNNING = gauge("galatea_control_operations_running",
            "Loads, unloads and readiness checks of models in progress").labels(&["operation"]);
        pub CONTROL_WAITING = gauge("galatea_control_operations_waiting",
            "Loads, unloads and readiness checks of models that wait for a thread, or for another operation on the \
             same model")
            .labels(&["operation"]);
        pub LOG_LINES_LOST = counter("galatea_log_lines_lost_total",
            "Lines that the server could not write, or not fast enough, by log").labels(&["log"]);
        pub TRACES_LOST = counter("galatea_traces_lost_total",
            "Traces, or parts of one, that found no room in the memory for traces, or could not be written or delivered");
        pub AUTH_FAILURES = counter("galatea_auth_failures_total",
            "Requests that the server refused because of missing, wrong or insufficient credentials, by reason")
            .labels(&["reason"]).shown("with `--auth-policy`");
        pub RESPONSE_CACHE_ERRORS = counter("galatea_response_cache_errors_total",
            "Look-ups and insertions that failed or timed out at the server of the response cache")
            .labels(&["operation"]).shown(REDIS_CACHE);
        pub RESPONSE_CACHE_LOST = gauge("galatea_response_cache_lost",
            "1 while the server of the response cache cannot be reached and requests are executed without it, else 0")
            .shown(REDIS_CACHE);
        pub RESPONSE_CACHE_LOSSES = counter("galatea_response_cache_losses_total",
            "Times that the server of the response cache could not be reached any more, or did not answer in time")
            .shown(REDIS_CACHE);
        pub ENVIRONMENTS = gauge("galatea_python_environments",
            "Python environments in the cache, as of the last load of a model that runs in one of them")
            .shown(WITH_ENVIRONMENTS);
        pub ENVIRONMENT_BYTES = gauge("galatea_python_environments_size_bytes",
            "Disk space of the Python environments in the cache, as measured when each was made, in bytes")
            .shown(WITH_ENVIRONMENTS);
        pub ENVIRONMENT_BUILDS = counter("galatea_python_environment_builds_total",
            "Python environments that this server has built or unpacked, by outcome")
            .labels(&["outcome"]).shown(WITH_ENVIRONMENTS);
    }
    MACHINE {
        pub(crate) CPU_UTILIZATION = gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]").shown(CPU_METRICS);
        pub(crate) CPU_MEMORY_TOTAL = gauge("nv_cpu_memory_total_bytes",
            "CPU total memory (RAM), in bytes").shown(CPU_METRICS);
        pub(crate) CPU_MEMORY_USED = gauge("nv_cpu_memory_used_bytes",
            "CPU used memory (RAM), in bytes").shown(CPU_METRICS);
        pub(crate) POOL_TOTAL = gauge("nv_pinned_memory_pool_total_bytes",
            "Pinned memory pool total memory size, in bytes");
        pub(crate) POOL_USED = gauge("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes");
    }
    GPUS {
        pub(crate) GPU_UTILIZATION = gpu_gauge("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)");
        pub(crate) GPU_MEMORY_TOTAL = gpu_gauge("nv_gpu_memory_total_bytes", "GPU total memory, in bytes");
        pub(crate) GPU_MEMORY_USED = gpu_gauge("nv_gpu_memory_used_bytes", "GPU used memory, in bytes");
        pub(crate) GPU_POWER_USAGE = gpu_gauge("nv_gpu_power_usage", "GPU power usage in watts");
        pub(crate) GPU_POWER_LIMIT = gpu_gauge("nv_gpu_power_limit", "GPU power management limit in watts");
        pub(crate) GPU_ENERGY = counter("nv_energy_consumption",
            "GPU energy consumption in joules since the Triton Server started").labels(GPU).shown(GPU_METRICS);
    }
    PROGRAM {
        pub(crate) CPU_SECONDS = counter("process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds, that of workers not included.");
        pub(crate) START_TIME = gauge("process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.");
        pub(crate) RESIDENT = gauge("process_resident_memory_bytes", "Resident memory size in bytes.");
        pub(crate) VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.");
        pub(crate) OPEN_FILES = gauge("process_open_fds", "Number of open file descriptors.");
        pub(crate) MOST_FILES = gauge("process_max_fds", "Maximum number of open file descriptors.");
        pub(crate) BUILD_INFO = gauge("galatea_build_info",
            "Always 1; the labels name the version and the version of Triton that it is compatible with")
            .labels(&["version", "triton_version"]);
    }
}

lists! {
    /// Durations of successful requests, in the order of the phases.
    pub(crate) PHASE_COUNTERS: 5 latency_counter {
        "nv_inference_request_duration_us" "Cumulative inference request duration in microseconds (includes cached requests)";
        "nv_inference_queue_duration_us" "Cumulative inference queuing duration in microseconds (includes cached requests)";
        "nv_inference_compute_input_duration_us" "Cumulative compute input duration in microseconds (does not include cached requests)";
        "nv_inference_compute_infer_duration_us" "Cumulative compute inference duration in microseconds (does not include cached requests)";
        "nv_inference_compute_output_duration_us" "Cumulative inference compute output duration in microseconds (does not include cached requests)";
    }
    /// Hits and how long they took, misses and how long they took.
    pub(crate) CACHE_COUNTERS: 4 cache_counter {
        "nv_cache_num_hits_per_model" "Number of cache hits per model";
        "nv_cache_hit_duration_per_model" "Total cache hit duration per model, in microseconds";
        "nv_cache_num_misses_per_model" "Number of cache misses per model";
        "nv_cache_miss_duration_per_model" "Total cache miss (insert+lookup) duration per model, in microseconds";
    }
    /// Durations of successful requests, in the order of the phases.
    pub(crate) PHASE_SUMMARIES: 5 summary {
        "nv_inference_request_summary_us" "Summary of inference request duration in microseconds (includes cached requests)";
        "nv_inference_queue_summary_us" "Summary of inference queuing duration in microseconds (includes cached requests)";
        "nv_inference_compute_input_summary_us" "Cumulative compute input duration in microseconds (does not include cached requests)";
        "nv_inference_compute_infer_summary_us" "Cumulative compute inference duration in microseconds (does not include cached requests)";
        "nv_inference_compute_output_summary_us" "Cumulative inference compute output duration in microseconds (does not include cached requests)";
    }
    /// Durations of hits, and of misses.
    pub(crate) CACHE_SUMMARIES: 2 summary {
        "nv_cache_hit_summary_per_model" "Summary of cache hit counts/durations per model, in microseconds.";
        "nv_cache_miss_summary_per_model" "Summary of cache miss counts/durations per model, in microseconds.";
    }
    /// Durations of successful requests, in the order of the phases, in seconds.
    pub PHASE_HISTOGRAMS: 5 histogram {
        "galatea_inference_request_duration_seconds" "Time from receipt to the last response of successful requests";
        "galatea_inference_queue_duration_seconds" "Time that successful requests waited for an instance";
        "galatea_inference_compute_input_duration_seconds" "Time to prepare the inputs of successful requests";
        "galatea_inference_compute_infer_duration_seconds" "Time that the model computed for successful requests";
        "galatea_inference_compute_output_duration_seconds" "Time to hand out the outputs of successful requests";
    }
}

/// A part of the table, with its heading in the reference.
pub(crate) struct Section {
    pub title: &'static str,
    pub families: &'static [Family],
}

/// Every family of the server itself, in the order of the reference.
pub(crate) const SECTIONS: &[Section] = &[
    Section { title: "Requests of a model", families: MODELS },
    Section { title: "Durations as counters", families: &PHASE_COUNTERS },
    Section { title: "Durations as summaries", families: &PHASE_SUMMARIES },
    Section { title: "The response cache, by model", families: &CACHE_COUNTERS },
    Section { title: "The response cache, by model, as summaries", families: &CACHE_SUMMARIES },
    Section { title: "The response cache in memory", families: CACHE },
    Section { title: "Time to the first response", families: FIRST_RESPONSES },
    Section { title: "Durations as histograms", families: &PHASE_HISTOGRAMS },
    Section { title: "Batch sizes", families: BATCH_SIZES },
    Section { title: "Requests in progress, refusals and instances", families: OBSTACLES },
    Section { title: "Delay of batches", families: BATCH_DELAYS },
    Section { title: "Admission", families: ADMISSIONS },
    Section { title: "Load", families: LOADS },
    Section { title: "Memory of requests and responses", families: MEMORY },
    Section { title: "Readiness, front ends, control and environments", families: FIGURES },
    Section { title: "The machine", families: MACHINE },
    Section { title: "GPUs", families: GPUS },
    Section { title: "The program", families: PROGRAM },
];

/// Returns every family of the server itself.
pub(crate) fn all() -> impl Iterator<Item = &'static Family> {
    SECTIONS.iter().flat_map(|section| section.families)
}

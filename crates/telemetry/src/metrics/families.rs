//! The table of all families that the server itself has. The page, `docs/metrics.md` and the tests are made from it.
//!
//! Names and help texts of the families with `nv_` are Triton's: dashboards and their tests compare them. Those with
//! `galatea_` follow the conventions of Prometheus: base units, the unit at the end, `_total` for what only grows.

use super::family::Family;

const COUNTER_LATENCIES: &str = "unless `--metrics-config=counter_latencies=false`";
const HISTOGRAM_LATENCIES: &str = "with `--metrics-config=histogram_latencies=true`";
const SUMMARY_LATENCIES: &str = "with `--metrics-config=summary_latencies=true`";
const GPU_METRICS: &str = "where there are NVIDIA GPUs, unless `--allow-gpu-metrics=false`";
const CPU_METRICS: &str = "unless `--allow-cpu-metrics=false`";
const GPU: &[&str] = &["gpu_uuid"];
const CACHED_MODELS: &str =
    "for models with `response_cache`, where the server has a cache (`--cache-config`)";
const LOCAL_CACHE: &str = "with `--cache-config=local,size=...`";

pub(super) const SUCCESS: Family = Family::counter(
    "nv_inference_request_success",
    "Number of successful inference requests, all batch sizes",
)
.per_model();
pub(super) const FAILURE: Family = Family::counter(
    "nv_inference_request_failure",
    "Number of failed inference requests, all batch sizes",
)
.labels(&["model", "reason", "version"]);
pub(super) const INFERENCES: Family = Family::counter(
    "nv_inference_count",
    "Number of inferences performed (does not include cached requests)",
)
.per_model();
pub(super) const EXECUTIONS: Family = Family::counter(
    "nv_inference_exec_count",
    "Number of model executions performed (does not include cached requests)",
)
.per_model();

/// In the order of the phases.
pub(super) const PHASE_COUNTERS: [Family; 5] = [
    latency_counter(
        "nv_inference_request_duration_us",
        "Cumulative inference request duration in microseconds (includes cached requests)",
    ),
    latency_counter(
        "nv_inference_queue_duration_us",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
    ),
    latency_counter(
        "nv_inference_compute_input_duration_us",
        "Cumulative compute input duration in microseconds (does not include cached requests)",
    ),
    latency_counter(
        "nv_inference_compute_infer_duration_us",
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
    ),
    latency_counter(
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds (does not include cached requests)",
    ),
];

const fn latency_counter(name: &'static str, help: &'static str) -> Family {
    Family::counter(name, help).per_model().shown(COUNTER_LATENCIES)
}

/// Hits and how long they took, misses and how long they took.
pub(super) const CACHE_COUNTERS: [Family; 4] = [
    cache_counter("nv_cache_num_hits_per_model", "Number of cache hits per model"),
    cache_counter(
        "nv_cache_hit_duration_per_model",
        "Total cache hit duration per model, in microseconds",
    ),
    cache_counter("nv_cache_num_misses_per_model", "Number of cache misses per model"),
    cache_counter(
        "nv_cache_miss_duration_per_model",
        "Total cache miss (insert+lookup) duration per model, in microseconds",
    ),
];

const fn cache_counter(name: &'static str, help: &'static str) -> Family {
    Family::counter(name, help).per_model().shown(CACHED_MODELS)
}

pub(super) const CACHE_UTILIZATION: Family =
    cache_gauge("nv_cache_util", "Cache utilization [0.0 - 1.0]");
pub(super) const CACHE_ENTRIES: Family =
    cache_gauge("nv_cache_num_entries", "Number of responses stored in response cache");
pub(super) const CACHE_HITS: Family =
    cache_gauge("nv_cache_num_hits", "Number of cache hits in response cache");
pub(super) const CACHE_MISSES: Family =
    cache_gauge("nv_cache_num_misses", "Number of cache misses in response cache");
pub(super) const CACHE_LOOKUPS: Family =
    cache_gauge("nv_cache_num_lookups", "Number of cache lookups in response cache");
pub(super) const CACHE_EVICTIONS: Family =
    cache_gauge("nv_cache_num_evictions", "Number of cache evictions in response cache");
pub(super) const CACHE_LOOKUP_TIME: Family = cache_gauge(
    "nv_cache_lookup_duration",
    "Total cache lookup duration (hit and miss), in microseconds",
);
pub(super) const CACHE_INSERTION_TIME: Family =
    cache_gauge("nv_cache_insertion_duration", "Total cache insertion duration, in microseconds");

/// Triton's are gauges too.
const fn cache_gauge(name: &'static str, help: &'static str) -> Family {
    Family::gauge(name, help).shown(LOCAL_CACHE)
}

pub(super) const GPU_ENERGY: Family = Family::counter(
    "nv_energy_consumption",
    "GPU energy consumption in joules since the Triton Server started",
)
.labels(GPU)
.shown(GPU_METRICS);

pub(super) const PENDING: Family = Family::gauge(
    "nv_inference_pending_request_count",
    "Instantaneous number of pending requests awaiting execution per-model.",
)
.per_model();
pub(super) const LOAD_DURATION: Family =
    Family::gauge("nv_model_load_duration_secs", "Model load time in seconds").per_model();

pub(super) const POOL_TOTAL: Family = Family::gauge(
    "nv_pinned_memory_pool_total_bytes",
    "Pinned memory pool total memory size, in bytes",
);
pub(super) const POOL_USED: Family = Family::gauge(
    "nv_pinned_memory_pool_used_bytes",
    "Pinned memory pool used memory size, in bytes",
);

pub(super) const GPU_UTILIZATION: Family =
    gpu_gauge("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)");
pub(super) const GPU_MEMORY_TOTAL: Family =
    gpu_gauge("nv_gpu_memory_total_bytes", "GPU total memory, in bytes");
pub(super) const GPU_MEMORY_USED: Family =
    gpu_gauge("nv_gpu_memory_used_bytes", "GPU used memory, in bytes");
pub(super) const GPU_POWER_USAGE: Family =
    gpu_gauge("nv_gpu_power_usage", "GPU power usage in watts");
pub(super) const GPU_POWER_LIMIT: Family =
    gpu_gauge("nv_gpu_power_limit", "GPU power management limit in watts");

const fn gpu_gauge(name: &'static str, help: &'static str) -> Family {
    Family::gauge(name, help).labels(GPU).shown(GPU_METRICS)
}

pub(super) const CPU_UTILIZATION: Family =
    Family::gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]").shown(CPU_METRICS);
pub(super) const CPU_MEMORY_TOTAL: Family =
    Family::gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes")
        .shown(CPU_METRICS);
pub(super) const CPU_MEMORY_USED: Family =
    Family::gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes").shown(CPU_METRICS);

/// Milliseconds, of decoupled models.
pub const FIRST_RESPONSE_HISTOGRAM: Family = Family::histogram(
    "nv_inference_first_response_histogram_ms",
    "Duration from request to first response in milliseconds",
)
.shown("with `--metrics-config=histogram_latencies=true`, for decoupled models");

/// In the order of the phases.
pub(super) const PHASE_SUMMARIES: [Family; 5] = [
    summary(
        "nv_inference_request_summary_us",
        "Summary of inference request duration in microseconds (includes cached requests)",
    ),
    summary(
        "nv_inference_queue_summary_us",
        "Summary of inference queuing duration in microseconds (includes cached requests)",
    ),
    summary(
        "nv_inference_compute_input_summary_us",
        "Cumulative compute input duration in microseconds (does not include cached requests)",
    ),
    summary(
        "nv_inference_compute_infer_summary_us",
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
    ),
    summary(
        "nv_inference_compute_output_summary_us",
        "Cumulative inference compute output duration in microseconds (does not include cached requests)",
    ),
];

const fn summary(name: &'static str, help: &'static str) -> Family {
    Family::summary(name, help).shown(SUMMARY_LATENCIES)
}

/// Of hits, and of misses.
pub(super) const CACHE_SUMMARIES: [Family; 2] = [
    summary(
        "nv_cache_hit_summary_per_model",
        "Summary of cache hit counts/durations per model, in microseconds.",
    ),
    summary(
        "nv_cache_miss_summary_per_model",
        "Summary of cache miss counts/durations per model, in microseconds.",
    ),
];

/// In the order of the phases, in seconds.
pub const PHASE_HISTOGRAMS: [Family; 5] = [
    histogram(
        "galatea_inference_request_duration_seconds",
        "How long successful requests took, from receipt to the last response",
    ),
    histogram(
        "galatea_inference_queue_duration_seconds",
        "How long successful requests waited for an instance",
    ),
    histogram(
        "galatea_inference_compute_input_duration_seconds",
        "How long making the inputs of successful requests ready took",
    ),
    histogram(
        "galatea_inference_compute_infer_duration_seconds",
        "How long the model computed for successful requests",
    ),
    histogram(
        "galatea_inference_compute_output_duration_seconds",
        "How long handing out the outputs of successful requests took",
    ),
];

/// Items per execution.
pub const BATCH_SIZE_HISTOGRAM: Family =
    histogram("galatea_inference_batch_size", "How many items were executed together");

const fn histogram(name: &'static str, help: &'static str) -> Family {
    Family::histogram(name, help).shown(HISTOGRAM_LATENCIES)
}

pub(super) const REFUSED: Family = Family::counter(
    "galatea_inference_requests_refused_total",
    "Requests to a model that were not executed, by reason",
)
.labels(&["model", "reason", "version"]);
pub(super) const IN_FLIGHT: Family = Family::gauge(
    "galatea_inference_requests_in_flight",
    "Requests to a model that wait or are executed at this moment",
)
.per_model();
pub(super) const INSTANCES: Family =
    Family::gauge("galatea_model_instances", "Instances of a model").per_model();
pub(super) const INSTANCES_WORKING: Family = Family::gauge(
    "galatea_model_instances_working",
    "Instances of a model that work; the others are being started again",
)
.per_model();
pub(super) const RESTARTS: Family = Family::counter(
    "galatea_model_instance_restarts_total",
    "How often an instance of a model that had stopped working was started again",
)
.per_model();

pub(super) const EXECUTIONS_ON_CONNECTION_THREADS: Family = Family::counter(
    "galatea_executions_on_connection_threads_total",
    "Executions of a model by the thread that received a request, as part of all executions: where they are short, that is \
     cheaper than waking the thread of an instance",
)
.per_model();

pub(super) const BATCH_DELAY: Family = Family::gauge(
    "galatea_batch_delay_duration_seconds",
    "How long the last batches of a model waited for more requests, on average, where `batch_delay` is left to the server",
)
.per_model();

pub(super) const MODEL_LOAD: Family = Family::gauge(
    "galatea_model_load",
    "How much of what the instances of a model can do was asked of them in the last second: the share of it in which they \
     worked, and beside that the requests that waited over those that the instances take at once; 1: all work and none waits",
)
.per_model();
pub(super) const LOAD: Family = Family::gauge(
    "galatea_load",
    "The highest galatea_model_load of all models: what an autoscaler adds servers by",
);

pub(super) const MEMORY_LIMIT: Family = Family::gauge(
    "galatea_memory_budget_limit_bytes",
    "Memory that requests and responses may take in all, in bytes",
);
pub(super) const MEMORY_USED: Family = Family::gauge(
    "galatea_memory_budget_used_bytes",
    "Memory that requests and responses take, in bytes",
);
pub(super) const MEMORY_REFUSED: Family = Family::counter(
    "galatea_memory_budget_refused_total",
    "How often a request was refused because the memory budget was used up",
);

/// Connections of all front ends.
pub const CONNECTIONS: Family =
    Family::gauge("galatea_connections_open", "Connections that are open, of all front ends");
/// `--max-connections`.
pub const CONNECTIONS_LIMIT: Family =
    Family::gauge("galatea_connections_limit", "Connections that may be open: --max-connections");
/// No place was free and none could be made.
pub const CONNECTIONS_REFUSED: Family = Family::counter(
    "galatea_connections_refused_total",
    "Connections that were refused because as many were open as may be, none of them idle",
);
/// By the server's choice.
pub const CONNECTIONS_CLOSED: Family = Family::counter(
    "galatea_connections_closed_total",
    "Connections that the server closed, by reason",
)
.labels(&["reason"]);

/// The queue of long requests.
pub const LONG_REQUESTS_WAITING: Family = Family::gauge(
    "galatea_long_requests_waiting",
    "Long bodies and responses that wait for one of the threads that decode and render them",
);
/// Before they reached a model.
pub const REQUESTS_REFUSED: Family = Family::counter(
    "galatea_requests_refused_total",
    "Requests that were refused before they reached a model, by reason; those refused for want of memory are counted \
     with the memory budget",
)
.labels(&["reason"]);

/// Loads, unloads and questions.
pub const CONTROL_RUNNING: Family = Family::gauge(
    "galatea_control_operations_running",
    "Loads, unloads and questions to models that are under way",
)
.labels(&["operation"]);
/// As above.
pub const CONTROL_WAITING: Family = Family::gauge(
    "galatea_control_operations_waiting",
    "Loads, unloads and questions to models that wait for a thread or for another of the same model",
)
.labels(&["operation"]);

/// Of a log that is written beside the requests.
pub const LOG_LINES_LOST: Family = Family::counter(
    "galatea_log_lines_lost_total",
    "Lines that could not be written, or not fast enough, by log",
)
.labels(&["log"]);

/// Of clients that were not let in, and of those that asked for what they may not.
pub const AUTH_FAILURES: Family = Family::counter(
    "galatea_auth_failures_total",
    "Requests that were refused because of who sent them, by reason",
)
.labels(&["reason"])
.shown("with `--auth-policy`");

/// Of a cache that is not in the memory of this server.
pub const RESPONSE_CACHE_ERRORS: Family = Family::counter(
    "galatea_response_cache_errors_total",
    "Look-ups and insertions that the response cache's server could not do, or not in time",
)
.labels(&["operation"])
.shown("with `--cache-config=redis,...`");

const WITH_ENVIRONMENTS: &str = "once a Python model has asked for an environment";
/// Of the cache.
pub const ENVIRONMENTS: Family = Family::gauge(
    "galatea_python_environments",
    "Python environments in the cache, as of the last load of a model that runs in one of them",
)
.shown(WITH_ENVIRONMENTS);
/// Of the cache.
pub const ENVIRONMENT_BYTES: Family = Family::gauge(
    "galatea_python_environments_size_bytes",
    "Disk space of the Python environments in the cache, as measured when each was made, in bytes",
)
.shown(WITH_ENVIRONMENTS);
/// Of this server.
pub const ENVIRONMENT_BUILDS: Family = Family::counter(
    "galatea_python_environment_builds_total",
    "Python environments that this server has built or unpacked, by outcome",
)
.labels(&["outcome"])
.shown(WITH_ENVIRONMENTS);

pub(super) const BUILD_INFO: Family = Family::gauge(
    "galatea_build_info",
    "Always 1; the labels name the version and the Triton version whose contract is kept",
)
.labels(&["version", "triton_version"]);

/// A part of the table, with its heading in the reference.
pub(super) struct Section {
    pub title: &'static str,
    pub families: &'static [Family],
}

/// What other parts of the server give the values of, in the order of the page.
pub(super) const FIGURES: &[Family] = &[
    CONNECTIONS,
    CONNECTIONS_LIMIT,
    CONNECTIONS_REFUSED,
    CONNECTIONS_CLOSED,
    REQUESTS_REFUSED,
    LONG_REQUESTS_WAITING,
    CONTROL_RUNNING,
    CONTROL_WAITING,
    LOG_LINES_LOST,
    AUTH_FAILURES,
    RESPONSE_CACHE_ERRORS,
    ENVIRONMENTS,
    ENVIRONMENT_BYTES,
    ENVIRONMENT_BUILDS,
];

/// Every family of the server itself.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "Requests of a model",
        families: &[SUCCESS, FAILURE, INFERENCES, EXECUTIONS, PENDING, LOAD_DURATION],
    },
    Section { title: "Durations as counters", families: &PHASE_COUNTERS },
    Section { title: "Durations as summaries", families: &PHASE_SUMMARIES },
    Section { title: "The response cache, by model", families: &CACHE_COUNTERS },
    Section { title: "The response cache, by model, as summaries", families: &CACHE_SUMMARIES },
    Section {
        title: "The response cache in memory",
        families: &[
            CACHE_UTILIZATION,
            CACHE_ENTRIES,
            CACHE_HITS,
            CACHE_MISSES,
            CACHE_LOOKUPS,
            CACHE_EVICTIONS,
            CACHE_LOOKUP_TIME,
            CACHE_INSERTION_TIME,
        ],
    },
    Section { title: "Time to the first response", families: &[FIRST_RESPONSE_HISTOGRAM] },
    Section { title: "Durations as histograms", families: &PHASE_HISTOGRAMS },
    Section { title: "Batch sizes", families: &[BATCH_SIZE_HISTOGRAM] },
    Section {
        title: "What keeps a model from answering",
        families: &[
            REFUSED,
            IN_FLIGHT,
            INSTANCES,
            INSTANCES_WORKING,
            RESTARTS,
            EXECUTIONS_ON_CONNECTION_THREADS,
        ],
    },
    Section { title: "Delay of batches", families: &[BATCH_DELAY] },
    Section { title: "Load", families: &[MODEL_LOAD, LOAD] },
    Section {
        title: "Memory of requests and responses",
        families: &[MEMORY_LIMIT, MEMORY_USED, MEMORY_REFUSED],
    },
    Section { title: "Front ends, control and environments", families: FIGURES },
    Section {
        title: "The machine",
        families: &[CPU_UTILIZATION, CPU_MEMORY_TOTAL, CPU_MEMORY_USED, POOL_TOTAL, POOL_USED],
    },
    Section {
        title: "GPUs",
        families: &[
            GPU_UTILIZATION,
            GPU_MEMORY_TOTAL,
            GPU_MEMORY_USED,
            GPU_POWER_USAGE,
            GPU_POWER_LIMIT,
            GPU_ENERGY,
        ],
    },
    Section { title: "The program", families: &[BUILD_INFO] },
];

/// Every family of the server itself.
pub(super) fn all() -> impl Iterator<Item = &'static Family> {
    SECTIONS.iter().flat_map(|section| section.families)
}

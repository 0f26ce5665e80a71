//! Options about memory, devices and native libraries.

use galatea_command_line::{Kind, set};

use super::{
    super::setting,
    row::{ANY, Row},
};

/// The note on memory that Triton holds ready for all models.
const OWN_MEMORY: &str = "each runtime library manages the memory of its models";

pub const MEMORY: &[Row] = &[
    Row::new(
        "pinned-memory-pool-byte-size",
        Kind::Integer { min: 0, max: i64::MAX },
        "Most memory held ready for copies to and from GPUs, in bytes.",
    )
    .default("268435456")
    .stores(|o, v| v.put(&mut o.engine.metrics.pinned_memory_pool_bytes))
    .no_effect(OWN_MEMORY),
    Row::new(
        "cuda-memory-pool-byte-size",
        Kind::Form("<integer>:<integer>"),
        "GPU memory held ready: <GPU>:<bytes>. May be repeated.",
    )
    .stores(setting::gpu_bytes)
    .no_effect(OWN_MEMORY),
    Row::new(
        "cuda-virtual-address-size",
        Kind::Form("<integer>:<integer>"),
        "Address space of a growing implicit state: <GPU>:<bytes>. May be repeated.",
    )
    .stores(setting::gpu_bytes)
    .no_effect(OWN_MEMORY),
    Row::new(
        "min-supported-compute-capability",
        Kind::Number,
        "GPUs of a lower compute capability are not used.",
    )
    .default("6.0")
    .stores(|o, v| v.put(&mut o.engine.gpus.min_compute_capability)),
    Row::new("buffer-manager-thread-count", ANY, "Threads that copy tensors.")
        .default("0")
        .no_effect("a tensor is copied at most once, by the thread that runs its batch"),
    Row::new(
        "host-policy",
        Kind::Form("<string>,<string>=<string>"),
        "Where the threads and processes of instances run: <policy>,<setting>=<value>. Settings are \
         cpu-cores, <first>-<last>[,...], and numa-node. Without host_policy a group has the \
         policy cpu, gpu_<number> or model, by its kind.",
    )
    .stores(setting::host_policy),
    Row::new(
        "model-load-gpu-limit",
        Kind::Form("<device_id>:<fraction>"),
        "Share of a GPU's memory above which no model is loaded.",
    )
    .stores(setting::gpu_limit)
    .no_effect("the memory of a GPU is not looked at before a load"),
];

pub const GPUS: &[Row] = &[Row::new(
    "gpu-groups",
    Kind::Choice(&["refuse", "cpu"]),
    "What becomes of instance groups of kind KIND_GPU where none of their GPUs can be used: the \
     model does not load, or as many instances run on the CPU, with a warning per model.",
)
.default("refuse")
.stores(set!(|o, v| o.engine.gpus.missing = setting::missing_gpus(v)))];

pub const RUNTIMES: &[Row] = &[
    Row::new(
        "runtime-downloads",
        Kind::Choice(&["auto", "never"]),
        "Whether a native runtime library that a model needs and that is not installed is \
         fetched, as 'galatea runtime install' does.",
    )
    .default("auto")
    .stores(set!(|o, v| o.runtimes.may_download = !v.is("never"))),
    Row::new(
        "onnxruntime-lib",
        Kind::Text,
        "ONNX Runtime library to use, before every other place.",
    )
    .stores(|o, v| v.put(&mut o.runtimes.onnxruntime_lib)),
    Row::new(
        "tensorflow-lib",
        Kind::Text,
        "TensorFlow library to use (libtensorflow_cc.so.2 or libtensorflow.so.2), before every \
         other place.",
    )
    .stores(|o, v| v.put(&mut o.runtimes.tensorflow_lib)),
    Row::new(
        "openvino-lib",
        Kind::Text,
        "OpenVINO's C library to use (libopenvino_c.so, the rest beside it), before every other \
         place.",
    )
    .stores(|o, v| v.put(&mut o.runtimes.openvino_lib)),
    Row::new(
        "libtorch",
        Kind::Text,
        "Folder of the libtorch to use, with lib and include in it (the folder torch of a \
         Python environment is one), before every other place.",
    )
    .stores(|o, v| v.put(&mut o.runtimes.libtorch)),
];

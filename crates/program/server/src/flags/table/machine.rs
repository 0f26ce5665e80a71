//! Options about memory, devices and native libraries.

use galatea_command_line::{Kind, options, set};

use super::{
    super::setting,
    row::{ANY, Row},
};

/// The note on memory that Triton holds ready for all models.
const OWN_MEMORY: &str = "each runtime library manages the memory of its models";

pub const MEMORY: &[Row] = options! {
    /// Most bytes of memory held ready for copies to and from GPUs.
    "pinned-memory-pool-byte-size" => Row::of(Kind::Integer { min: 0, max: i64::MAX })
        .default("268435456")
        .fills(|o| &mut o.serve.engine.metrics.pinned_memory_pool_bytes)
        .no_effect(OWN_MEMORY),
    /// GPU memory held ready: <GPU>:<bytes>. May be repeated.
    "cuda-memory-pool-byte-size" => Row::of(Kind::Form("<integer>:<integer>"))
        .stores(setting::gpu_bytes).no_effect(OWN_MEMORY),
    /// Address space of a growing implicit state: <GPU>:<bytes>. May be repeated.
    "cuda-virtual-address-size" => Row::of(Kind::Form("<integer>:<integer>"))
        .stores(setting::gpu_bytes).no_effect(OWN_MEMORY),
    /// Lowest compute capability of GPUs that the server uses.
    "min-supported-compute-capability" => Row::of(Kind::Number)
        .default("6.0").fills(|o| &mut o.serve.engine.gpus.min_compute_capability),
    /// Threads that copy tensors.
    "buffer-manager-thread-count" => Row::of(ANY)
        .default("0")
        .no_effect("a tensor is copied at most once, by the thread that runs its batch"),
    /// CPUs or NUMA node on which the threads and processes of instances run: <policy>,<setting>=<value>. Settings are
    /// cpu-cores, <first>-<last>[,...], and numa-node. Without host_policy a group has the policy cpu, gpu_<number> or
    /// model, by its kind.
    "host-policy" => Row::of(Kind::Form("<string>,<string>=<string>")).stores(setting::host_policy),
    /// Share of a GPU's memory in use above which the server loads no more models.
    "model-load-gpu-limit" => Row::of(Kind::Form("<device_id>:<fraction>"))
        .stores(setting::gpu_limit).no_effect("the memory of a GPU is not looked at before a load"),
};

pub const GPUS: &[Row] = options! {
    /// Treatment of instance groups of kind KIND_GPU none of whose GPUs can be used: the model fails to load (refuse),
    /// or as many instances run on the CPU, with a warning per model (cpu).
    "gpu-groups" => Row::of(Kind::Choice(&["refuse", "cpu"]))
        .default("refuse")
        .stores(set!(|o, v| o.serve.engine.gpus.missing = setting::missing_gpus(v))),
};

pub const RUNTIMES: &[Row] = options! {
    /// Fetch a native runtime library that a model needs and that is not installed, as 'galatea runtime install' does.
    "runtime-downloads" => Row::of(Kind::Choice(&["auto", "never"]))
        .default("auto").stores(set!(|o, v| o.serve.runtimes.may_download = !v.is("never"))),
    /// ONNX Runtime library to use. It takes precedence over every other place.
    "onnxruntime-lib" => Row::of(Kind::Text).fills(|o| &mut o.serve.runtimes.onnxruntime_lib),
    /// TensorFlow library to use (libtensorflow_cc.so.2 or libtensorflow.so.2). It takes precedence over every other
    /// place.
    "tensorflow-lib" => Row::of(Kind::Text).fills(|o| &mut o.serve.runtimes.tensorflow_lib),
    /// OpenVINO's C library to use (libopenvino_c.so, with the other libraries beside it). It takes precedence over
    /// every other place.
    "openvino-lib" => Row::of(Kind::Text).fills(|o| &mut o.serve.runtimes.openvino_lib),
    /// Folder of the libtorch to use, with lib and include in it, such as the folder torch of a Python environment. It
    /// takes precedence over every other place.
    "libtorch" => Row::of(Kind::Text).fills(|o| &mut o.serve.runtimes.libtorch),
};

use super::{Flag, Kind, at_least};

/// Said of memory that Triton holds ready for all models.
const OWN_MEMORY: &str = "each runtime library manages the memory of its models";

pub const MEMORY: &[Flag] = &[
    Flag::new(
        "pinned-memory-pool-byte-size",
        Kind::Integer { min: 0, max: i64::MAX },
        "268435456",
        "Most memory held ready for copies to and from GPUs, in bytes.",
    )
    .told_as("pinned_memory_pool_byte_size")
    .no_effect(OWN_MEMORY),
    Flag::new(
        "cuda-memory-pool-byte-size",
        Kind::Setting("<integer>:<integer>"),
        "",
        "GPU memory held ready: <GPU>:<bytes>. May be repeated.",
    )
    .no_effect(OWN_MEMORY),
    Flag::new(
        "cuda-virtual-address-size",
        Kind::Setting("<integer>:<integer>"),
        "",
        "Address space of a growing implicit state: <GPU>:<bytes>. May be repeated.",
    )
    .no_effect(OWN_MEMORY),
    Flag::new(
        "min-supported-compute-capability",
        Kind::Number,
        "6.0",
        "GPUs of a lower compute capability are not used.",
    )
    .told_as("min_supported_compute_capability"),
    Flag::new("buffer-manager-thread-count", at_least(0), "0", "Threads that copy tensors.")
        .no_effect("a tensor is copied at most once, by the thread that runs its batch"),
    Flag::new(
        "host-policy",
        Kind::Setting("<string>,<string>=<string>"),
        "",
        "Where instances of a policy run: <policy>,<setting>=<value>.",
    )
    .not_yet(
        "instance threads are placed by the system; use taskset or numactl on the whole server",
    ),
    Flag::new(
        "model-load-gpu-limit",
        Kind::Setting("<device_id>:<fraction>"),
        "",
        "Share of a GPU's memory above which no model is loaded.",
    )
    .no_effect("the memory of a GPU is not looked at before a load"),
];

pub const RUNTIMES: &[Flag] = &[
    Flag::new(
        "runtime-downloads",
        Kind::Choice(&["auto", "never"]),
        "auto",
        "Whether a native runtime library that a model needs and that is not installed is fetched, as \
         'galatea runtime install' does.",
    )
    .told_as("runtime_downloads"),
    Flag::new(
        "onnxruntime-lib",
        Kind::Text,
        "",
        "ONNX Runtime library to use, before every other place.",
    ),
    Flag::new(
        "libtorch",
        Kind::Text,
        "",
        "Folder of the libtorch to use, with lib and include in it (the folder torch of a Python environment is \
         one), before every other place.",
    ),
];

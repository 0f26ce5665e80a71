//! Where and how fast a model runs.

use super::entry::{Section, by_table, works};

pub(super) const SECTIONS: &[Section] = &[
    Section {
        message: "ModelInstanceGroup",
        about: "Refused for an ensemble, which has no instances. All groups of a model together have 1,024 instances at most.",
        fields: &[
            works("name", "the model's name, and of a group that is written `_` and its number", "The beginning of the names of its instances"),
            works("kind", "`KIND_AUTO`: GPU where the model's library can use one, else CPU", "What each instance runs on")
                .with("`KIND_GPU` is refused where there is no GPU, or by `--gpu-groups=cpu` run on the CPU; see [GPUs](gpu.md)"),
            works("count", "1; 2 for ONNX models on the CPU", "Instances, on each of `gpus` where the kind is GPU")
                .with("instances of an ONNX or PyTorch model share its weights; each of a Python model is a process"),
            works("rate_limiter", "", "What an execution must hold before it begins")
                .with("with `--rate-limit=execution_count`, see [scheduling](scheduling.md#rate-limiter); else a warning says that nothing is limited"),
            works("gpus", "all that the server can use", "Indices of the GPUs, for `KIND_GPU`"),
            by_table("secondary_devices", "", "Accelerators beside the GPU"),
            works("profile", "", "Optimization profiles of TensorRT").refused("profiles are TensorRT's"),
            by_table("passive", "false", "Its instances are loaded and get no requests"),
            works("host_policy", "`cpu`, `gpu_<index>` or `model`, by kind", "The policy of the command line for threads and memory")
                .with("with `--host-policy`, see [scheduling](scheduling.md#host-policies); a policy that is not there is warned about"),
        ],
    },
    Section {
        message: "ModelInstanceGroup.SecondaryDevice",
        about: "",
        fields: &[
            by_table("kind", "`KIND_NVDLA`", "The kind of accelerator"),
            by_table("device_id", "0", "Its index"),
        ],
    },
    Section {
        message: "ModelRateLimiter",
        about: "",
        fields: &[
            works("resources", "", "What an execution holds while it runs"),
            works("priority", "1", "A weight: an instance of priority 2 executes half as often as one of 1"),
        ],
    },
    Section {
        message: "ModelRateLimiter.Resource",
        about: "",
        fields: &[
            works("name", "", "Its name on the command line"),
            works("global", "false", "One pool for the server, and not one per device"),
            works("count", "0", "Copies that one execution holds"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy",
        about: "Refused for an ensemble.",
        fields: &[
            works("graph", "", "How much the runtime may change the graph"),
            works("priority", "`PRIORITY_DEFAULT`", "Which models' instances go first where they compete for CPUs")
                .with("`PRIORITY_MIN` needs no permission, `PRIORITY_MAX` does: see [scheduling](scheduling.md#priority-of-a-model)"),
            by_table("cuda", "", "What the backend may do with CUDA"),
            works("execution_accelerators", "", "Accelerators inside of the runtime, see [GPUs](gpu.md)"),
            works("input_pinned_memory", "`enable: true`", "Inputs may be collected in pinned memory")
                .without_effect("nothing is ever pinned"),
            works("output_pinned_memory", "`enable: true`", "Outputs may be collected in pinned memory")
                .without_effect("nothing is ever pinned"),
            by_table("gather_kernel_buffer_threshold", "0: never", "Buffers from which on a kernel collects inputs on a GPU"),
            by_table("eager_batching", "false", "The next batch is prepared while one executes"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.Graph",
        about: "",
        fields: &[works("level", "the runtime's own", "ONNX Runtime: -1 basic optimizations, 1 extended ones, 2 none, any other \
                         number all; TensorFlow: -1 none, 1 and 2 compilation by XLA")],
    },
    Section {
        message: "ModelOptimizationPolicy.Cuda",
        about: "",
        fields: &[
            by_table("graphs", "false", "Executions are captured as CUDA graphs"),
            by_table("busy_wait_events", "false", "Events are polled"),
            by_table("graph_spec", "", "Shapes for which graphs are captured"),
            by_table("output_copy_stream", "false", "Outputs are copied on a stream of their own"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.Cuda.GraphSpec",
        about: "",
        fields: &[
            by_table("batch_size", "0", "The batch size of the graph"),
            by_table("input", "", "The shape of each input"),
            by_table("graph_lower_bound", "", "The smallest batch and shapes that the graph may be used for"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.Cuda.GraphSpec.Shape",
        about: "",
        fields: &[by_table("dim", "", "The dimensions")],
    },
    Section {
        message: "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound",
        about: "",
        fields: &[
            by_table("batch_size", "0", "The batch size"),
            by_table("input", "", "The shape of each input"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.ExecutionAccelerators",
        about: "",
        fields: &[
            works("gpu_execution_accelerator", "", "For instances on GPUs, the preferred first: `cuda`, `tensorrt`"),
            works("cpu_execution_accelerator", "", "For instances on the CPU")
                .with("`openvino` where the ONNX Runtime has it, else the CPU as without it"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator",
        about: "",
        fields: &[
            works("name", "", "The accelerator"),
            works("parameters", "", "Its options, see [GPUs](gpu.md)"),
        ],
    },
    Section {
        message: "ModelOptimizationPolicy.PinnedMemoryBuffer",
        about: "",
        fields: &[works("enable", "true", "Whether pinned memory may be used").without_effect("nothing is ever pinned")],
    },
    Section {
        message: "ModelWarmup",
        about: "",
        fields: &[
            works("name", "", "Its name in messages"),
            works("batch_size", "0: the sample is skipped", "How many such requests are executed together, at most `max_batch_size`; without batching one by one"),
            works("inputs", "", "What is sent, by the name of the input"),
            works("count", "1", "How often it is executed, at most 100000"),
        ],
    },
    Section {
        message: "ModelWarmup.Input",
        about: "",
        fields: &[
            works("data_type", "", "The type of the input. Required"),
            works("dims", "", "Its shape without the batch dimension"),
            works("zero_data", "", "All elements are 0; strings are empty"),
            works("random_data", "", "Elements are random, the same at each load; strings are empty"),
            works("input_data_file", "", "A file in the folder `warmup` of the model with the elements as they are in a request"),
        ],
    },
];

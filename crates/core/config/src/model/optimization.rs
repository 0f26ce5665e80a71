//! Hints that change how fast a model runs, not what it answers.

use std::collections::BTreeMap;

/// The section `optimization`, with its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimization {
    /// How much the runtime may change the graph; what the numbers mean is up to the backend.
    pub graph_level: Option<i32>,
    /// Which models' instances go first where they compete.
    pub priority: ModelPriority,
    /// Of CUDA.
    pub cuda: CudaOptimization,
    /// Accelerators for instances on GPUs, the preferred first.
    pub gpu_accelerators: Vec<Accelerator>,
    /// Accelerators for instances on the CPU, the preferred first.
    pub cpu_accelerators: Vec<Accelerator>,
    /// Inputs may be collected in pinned memory.
    pub pins_inputs: bool,
    /// Outputs may be collected in pinned memory.
    pub pins_outputs: bool,
    /// Buffers from which on a kernel collects inputs on a GPU. 0: never.
    pub gather_kernel_buffer_threshold: u32,
    /// The next batch is prepared while one executes.
    pub batches_eagerly: bool,
}

/// As when the section is left out.
impl Default for Optimization {
    fn default() -> Self {
        Self {
            graph_level: None,
            priority: ModelPriority::Default,
            cuda: CudaOptimization::default(),
            gpu_accelerators: Vec::new(),
            cpu_accelerators: Vec::new(),
            pins_inputs: true,
            pins_outputs: true,
            gather_kernel_buffer_threshold: 0,
            batches_eagerly: false,
        }
    }
}

/// Which models' instances go first where they compete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelPriority {
    /// As all others.
    #[default]
    Default,
    /// Before others.
    Max,
    /// After others.
    Min,
}

/// What a backend may do with CUDA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CudaOptimization {
    /// Executions are captured as CUDA graphs, also when only their specifications are given.
    pub uses_graphs: bool,
    /// Events are polled.
    pub busy_waits: bool,
    /// Outputs are copied on a stream of their own.
    pub has_output_copy_stream: bool,
}

/// An accelerator inside a runtime, such as an execution provider of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accelerator {
    /// E.g. `tensorrt`.
    pub name: String,
    /// Options of the accelerator.
    pub parameters: BTreeMap<String, String>,
}

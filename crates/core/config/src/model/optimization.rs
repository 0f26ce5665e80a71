//! Hints that change the speed of a model, not its responses.

use std::collections::BTreeMap;

/// The parts of the section `optimization` that backends and the scheduler use. The default is that of a missing section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimization {
    /// The level of graph changes that the runtime may make; the backend defines the numbers.
    pub graph_level: Option<i32>,
    /// The priority of the model's instances over those of other models.
    pub priority: ModelPriority,
    /// Accelerators for instances on GPUs, the preferred first.
    pub gpu_accelerators: Vec<Accelerator>,
    /// Accelerators for instances on the CPU, the preferred first.
    pub cpu_accelerators: Vec<Accelerator>,
}

/// The priority of a model's instances over those of other models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelPriority {
    /// The same priority as all others.
    #[default]
    Default,
    /// Before others.
    Max,
    /// After others.
    Min,
}

/// An accelerator inside a runtime, such as an execution provider of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accelerator {
    /// The name, e.g. `tensorrt`.
    pub name: String,
    /// Options of the accelerator.
    pub parameters: BTreeMap<String, String>,
}

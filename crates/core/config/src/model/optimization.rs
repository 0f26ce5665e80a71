//! Hints that change how fast a model runs, not what it answers.

use std::collections::BTreeMap;

/// What backends and the scheduler heed of the section `optimization`. The default is that of a section that is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Optimization {
    /// How much the runtime may change the graph; what the numbers mean is up to the backend.
    pub graph_level: Option<i32>,
    /// Which models' instances go first where they compete.
    pub priority: ModelPriority,
    /// Accelerators for instances on GPUs, the preferred first.
    pub gpu_accelerators: Vec<Accelerator>,
    /// Accelerators for instances on the CPU, the preferred first.
    pub cpu_accelerators: Vec<Accelerator>,
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

/// An accelerator inside a runtime, such as an execution provider of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accelerator {
    /// E.g. `tensorrt`.
    pub name: String,
    /// Options of the accelerator.
    pub parameters: BTreeMap<String, String>,
}

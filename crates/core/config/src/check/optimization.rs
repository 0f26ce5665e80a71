//! Reads the section `optimization`, in which nothing can be wrong.

use galatea_proto::inference::model_optimization_policy::{
    ModelPriority as RawPriority, execution_accelerators::Accelerator as RawAccelerator,
};

use crate::{Accelerator, ModelPriority, Optimization, RawModelConfig};

pub(super) fn read(raw: &RawModelConfig) -> Optimization {
    let Some(section) = &raw.optimization else { return Optimization::default() };
    let accelerators = section.execution_accelerators.clone().unwrap_or_default();
    Optimization {
        graph_level: section.graph.map(|graph| graph.level),
        priority: match section.priority() {
            RawPriority::PriorityDefault => ModelPriority::Default,
            RawPriority::PriorityMax => ModelPriority::Max,
            RawPriority::PriorityMin => ModelPriority::Min,
        },
        gpu_accelerators: list(accelerators.gpu_execution_accelerator),
        cpu_accelerators: list(accelerators.cpu_execution_accelerator),
    }
}

fn list(accelerators: Vec<RawAccelerator>) -> Vec<Accelerator> {
    let accelerator = |RawAccelerator { name, parameters }| Accelerator { name, parameters };
    accelerators.into_iter().map(accelerator).collect()
}

//! The section `optimization`, in which nothing can be wrong.

use galatea_proto::inference::model_optimization_policy::{
    Cuda, ModelPriority as RawPriority, PinnedMemoryBuffer,
    execution_accelerators::Accelerator as RawAccelerator,
};

use crate::{Accelerator, CudaOptimization, ModelPriority, Optimization, RawModelConfig};

pub(super) fn read(raw: &RawModelConfig) -> Optimization {
    let Some(section) = &raw.optimization else { return Optimization::default() };
    let accelerators = section.execution_accelerators.as_ref();
    let is_enabled = |buffer: Option<PinnedMemoryBuffer>| buffer.is_none_or(|b| b.enable);
    Optimization {
        graph_level: section.graph.map(|graph| graph.level),
        priority: match section.priority() {
            RawPriority::PriorityDefault => ModelPriority::Default,
            RawPriority::PriorityMax => ModelPriority::Max,
            RawPriority::PriorityMin => ModelPriority::Min,
        },
        cuda: section.cuda.as_ref().map(cuda).unwrap_or_default(),
        gpu_accelerators: accelerators
            .map(|a| list(&a.gpu_execution_accelerator))
            .unwrap_or_default(),
        cpu_accelerators: accelerators
            .map(|a| list(&a.cpu_execution_accelerator))
            .unwrap_or_default(),
        pins_inputs: is_enabled(section.input_pinned_memory),
        pins_outputs: is_enabled(section.output_pinned_memory),
        gather_kernel_buffer_threshold: section.gather_kernel_buffer_threshold,
        batches_eagerly: section.eager_batching,
    }
}

fn cuda(cuda: &Cuda) -> CudaOptimization {
    CudaOptimization {
        uses_graphs: cuda.graphs || !cuda.graph_spec.is_empty(),
        busy_waits: cuda.busy_wait_events,
        has_output_copy_stream: cuda.output_copy_stream,
    }
}

fn list(accelerators: &[RawAccelerator]) -> Vec<Accelerator> {
    let accelerator =
        |a: &RawAccelerator| Accelerator { name: a.name.clone(), parameters: a.parameters.clone() };
    accelerators.iter().map(accelerator).collect()
}

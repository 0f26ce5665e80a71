//! Warns about configuration fields without effect in this server, by one table.
//!
//! A field that every part of the server ignores has a row here, so that no setting is ignored silently. Only speed or resources
//! may depend on such a field; the checker refuses fields that responses depend on. A backend that uses a field in part checks it
//! when it loads a model.

mod doubles;
mod gpus;

use galatea_proto::inference::model_optimization_policy::Cuda;

use crate::{Diagnostic, ModelConfig, QueuePolicy, Scheduling, backend_table::MODEL_FILES};

struct Row {
    /// The path of the field, which the message begins with.
    field: &'static str,
    /// The case of a set field in which the row holds, for the reference; empty for every case.
    condition: &'static str,
    applies: fn(&ModelConfig) -> bool,
    /// The text behind `{field} of model '{name}' `.
    sentence: &'static str,
}

/// Makes a row that holds for every model.
const fn row(
    field: &'static str,
    applies: fn(&ModelConfig) -> bool,
    sentence: &'static str,
) -> Row {
    Row { field, condition: "", applies, sentence }
}

impl Row {
    /// Limits the row to some models.
    const fn only(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }
}

/// The rows, in the order in which they are reported.
const ROWS: &[Row] = &[
    row(
        "batch_input",
        |c| !joins_tensors(c) && !c.batch_inputs().is_empty(),
        "has no effect: its backend gets each request by itself",
    )
    .only("for Python models and the built-in backends"),
    row(
        "batch_output",
        |c| !joins_tensors(c) && !c.batch_outputs().is_empty(),
        "has no effect: its backend answers each request by itself",
    )
    .only("for Python models and the built-in backends"),
    row(
        "parameters.pad_batches",
        |c| !joins_tensors(c) && c.padding().is_some(),
        "has no effect: its backend gets each request by itself, in the shape that it has",
    )
    .only("for Python models and the built-in backends"),
    row(
        "cc_model_filenames",
        |c| !c.raw().cc_model_filenames.is_empty(),
        "has no effect: 'default_model_filename' is loaded on every device",
    ),
    row(
        "optimization.graph.level",
        |c| {
            c.optimization().graph_level.is_some_and(|l| l != 0)
                && !matches!(c.backend(), "onnxruntime" | "tensorflow")
        },
        "has no effect on this backend",
    )
    .only("other than 0 on a backend other than `onnxruntime` and `tensorflow`"),
    row(
        "optimization.execution_accelerators",
        |c| !matches!(c.backend(), "onnxruntime" | "tensorflow") && has_accelerators(c),
        "has no effect on this backend",
    )
    .only("on a backend other than `onnxruntime` and `tensorflow`"),
    row(
        "optimization.cuda",
        |c| !misses_gpus(c) && has_cuda_settings(c),
        "has no effect: no backend of this server has these settings",
    ),
    row(
        "optimization.gather_kernel_buffer_threshold",
        |c| c.raw().optimization.as_ref().is_some_and(|o| o.gather_kernel_buffer_threshold != 0),
        "has no effect: inputs are collected on the CPU",
    ),
    row(
        "optimization.eager_batching",
        |c| c.raw().optimization.as_ref().is_some_and(|o| o.eager_batching),
        "has no effect: a batch is made when an instance is free, with all that has arrived by then",
    ),
    row(
        "instance_group.secondary_devices",
        |c| {
            !misses_gpus(c) && c.raw().instance_group.iter().any(|g| !g.secondary_devices.is_empty())
        },
        "has no effect: no backend of this server knows these devices",
    ),
    row(
        "instance_group.passive",
        |c| c.instance_groups().iter().any(|g| g.is_passive),
        "has no effect: its instances get requests as all others do",
    ),
    row(
        "ensemble_scheduling.step.model_namespace",
        has_namespaces,
        "has no effect: a step means the model of the ensemble's own repository, else the only one of that name",
    ),
    row(
        "model_operations",
        |c| c.backend() != "onnxruntime" && !c.operator_libraries().is_empty(),
        "has no effect on this backend",
    )
    .only("on a backend other than `onnxruntime`"),
    row(
        "dynamic_batching",
        batches_nothing,
        "forms no batches: 'max_batch_size' is 0. Set it to the most requests that one batch may hold if the model has a \
         batch dimension; else remove dynamic_batching",
    )
    .only("where `max_batch_size` is 0 and none of its settings of queues is used"),
];

/// The treatment of a set field, by one row of the table.
pub(crate) struct FieldTreatment {
    /// The case in which it holds; empty for every case.
    pub condition: &'static str,
    /// The words of the message behind the name of the model.
    pub sentence: &'static str,
}

/// Returns the rows of the field at `path`, such as `instance_group.passive`, without those of its section.
pub(crate) fn treatments(path: &str) -> impl Iterator<Item = FieldTreatment> {
    let rows = ROWS.iter().filter(move |row| row.field == path);
    rows.map(|row| FieldTreatment { condition: row.condition, sentence: row.sentence })
}

impl ModelConfig {
    /// Returns the parts of this configuration that this server does not support, for the log.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let rows = ROWS.iter().filter(|row| (row.applies)(self)).map(|row| {
            let text = format!("{} of model '{}' {}", row.field, self.name(), row.sentence);
            Diagnostic::warning(text).about(row.field)
        });
        rows.chain(gpus::find(self)).chain(doubles::find(self)).collect()
    }
}

/// Returns whether a dynamic batcher has no batches to form and no other task. Queues and their order need no batches.
fn batches_nothing(config: &ModelConfig) -> bool {
    let Scheduling::Dynamic(dynamic) = config.scheduling() else { return false };
    let has_queues = dynamic.priority_levels > 0
        || dynamic.preserves_ordering
        || dynamic.default_queue_policy != QueuePolicy::default();
    !config.has_batching() && !has_queues
}

/// Returns whether the backend computes a batch as one tensor. Python models, and the backends of the program itself, get each
/// request's own tensors.
fn joins_tensors(config: &ModelConfig) -> bool {
    config.backend() != "python" && MODEL_FILES.iter().any(|f| f.backend == config.backend())
}

fn has_accelerators(config: &ModelConfig) -> bool {
    let optimization = config.optimization();
    let has_gpu_accelerators = !misses_gpus(config) && !optimization.gpu_accelerators.is_empty();
    has_gpu_accelerators || !optimization.cpu_accelerators.is_empty()
}

fn has_cuda_settings(config: &ModelConfig) -> bool {
    let section = config.raw().optimization.as_ref();
    section.and_then(|section| section.cuda.as_ref()).is_some_and(|cuda| *cuda != Cuda::default())
}

/// Returns whether a group for GPUs runs on the CPU. One warning covers all of that.
fn misses_gpus(config: &ModelConfig) -> bool {
    config.instance_groups().iter().any(|group| group.stands_for_gpus)
}

fn has_namespaces(config: &ModelConfig) -> bool {
    use galatea_proto::inference::model_config::SchedulingChoice::EnsembleScheduling;

    match &config.raw().scheduling_choice {
        Some(EnsembleScheduling(e)) => e.step.iter().any(|s| !s.model_namespace.is_empty()),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

//! What to do about each mistake.

use galatea_types::{Code, Error, suggest};

use super::{
    BatchIoError, BatchingError, ConfigError, EnsembleError, InstanceGroupError, KindProblem,
    NameError, SequenceError, StateError, TensorError, TensorProblem, WarmupError, at::At,
};
use crate::{
    Diagnostic, RawModelConfig, backend_advice,
    backend_advice::{backend_of, platform_advice},
    backend_table::platforms_of,
    check::ensemble,
};

/// The error in Triton's words; field and advice are in the [`Diagnostic`] behind it.
pub(super) fn into_error(error: At<ConfigError>, raw: &RawModelConfig) -> Error {
    let found = into_diagnostic(error, raw);
    Error::new(Code::InvalidArg, found.text.as_str()).with_source(found)
}

pub(super) fn into_diagnostic(error: At<ConfigError>, raw: &RawModelConfig) -> Diagnostic {
    let At { field, problem } = error;
    let found = Diagnostic::error(problem.to_string()).about(field);
    match advice(&problem, raw) {
        Some(advice) => found.with_advice(advice),
        None => found,
    }
}

fn advice(problem: &ConfigError, raw: &RawModelConfig) -> Option<String> {
    let text = match problem {
        ConfigError::Name(error) => return name(error),
        ConfigError::Tensor { error, .. } => return tensor(error, raw),
        ConfigError::Ensemble(error) => return of_ensemble(error, raw),
        ConfigError::BatchIo { error, .. } => return batch_io(error, raw),
        ConfigError::Padding { error, .. } => return Some(error.advice()),
        ConfigError::NoVersionPolicy { .. } => {
            "write `version_policy { latest { num_versions: 1 } }`"
        }
        // They say it themselves.
        ConfigError::Limit(_) | ConfigError::BatchDelay(_) | ConfigError::ResponseCache(_) => {
            return None;
        }
        ConfigError::Metrics(_) => {
            "write `metric_control { metric_identifier { family: \"nv_inference_first_response_histogram_ms\" } \
             histogram_options { buckets: [ 10, 100, 1000 ] } }`"
        }
        ConfigError::NegativeBatchSize { .. } => {
            "write the most requests that one batch may hold, or 0 for a model without a batch dimension"
        }
        ConfigError::InstanceGroup(error) => instance_group(error),
        ConfigError::Batching { error, .. } => return Some(batching(error, raw)),
        ConfigError::Sequence { error, .. } => return sequence(error, raw),
        ConfigError::State(error) => state(error),
        ConfigError::Warmup(error) => warmup(error),
    };
    Some(text.to_owned())
}

fn name(error: &NameError) -> Option<String> {
    Some(match error {
        NameError::NoName => "write `name: \"...\"`: the name of the folder".to_owned(),
        NameError::OtherDirectory { directory, model } => {
            format!("write `name: \"{directory}\"`, leave out `name`, or call the folder `{model}`")
        }
        NameError::NoBackend { .. } => backend_advice::NAME_A_BACKEND.to_owned(),
        NameError::UnknownPlatform { platform, .. } => platform_advice(platform),
        NameError::EnsembleWithBackend { .. } => "remove `backend`".to_owned(),
        NameError::OtherBackend { platform, backend } => other_backend(platform, backend)?,
    })
}

fn other_backend(platform: &str, backend: &str) -> Option<String> {
    if let Some(advice) = backend_of(backend) {
        return Some(advice);
    }
    if platform.is_empty() {
        let platforms = platforms_of(backend).map(|known| format!("`platform: \"{known}\"`"));
        return Some(format!("write {}", platforms.collect::<Vec<_>>().join(" or ")));
    }
    Some(match crate::backend_for_platform(platform) {
        Some(other) => format!(
            "`{platform}` is a platform of backend `{other}`: remove `platform`, or write `backend: \"{other}\"`"
        ),
        None => format!("remove `platform`: `backend: \"{backend}\"` says enough"),
    })
}

fn tensor(error: &TensorError, raw: &RawModelConfig) -> Option<String> {
    let batches = raw.max_batch_size > 0;
    let text = match error {
        TensorError::NoName { .. } => {
            "write `name: \"...\"`: the name that the tensor has in the model"
        }
        TensorError::ImageRank => {
            "`format` is for images, which have height, width and channels: remove it, or write three `dims`"
        }
        TensorError::ShapeTensor => {
            "remove `is_shape_tensor`: no TensorRT engine runs in this server"
        }
        TensorError::NonLinearFormat | TensorError::NonLinearRank { .. } => {
            "remove `is_non_linear_format_io`: no TensorRT engine runs in this server"
        }
        TensorError::Tensor { problem, .. } => match problem {
            TensorProblem::NoDataType => "write its type, for example `data_type: TYPE_FP32`",
            TensorProblem::NoDims if batches => {
                "write one number per dimension but the batch dimension, which `max_batch_size` adds, and -1 for any \
                 size: for example `dims: [ -1 ]`. For one number per item write `dims: [ 1 ] reshape { shape: [ ] }`"
            }
            TensorProblem::NoDims => {
                "write one number per dimension, and -1 for any size: for example `dims: [ -1 ]`"
            }
            TensorProblem::ScalarWithoutBatching => {
                "remove `reshape`, or set `max_batch_size` if the model has a batch dimension"
            }
            TensorProblem::Dimension if batches => {
                "write -1 for a dimension of any size; the batch dimension is not listed, `max_batch_size` adds it"
            }
            TensorProblem::Dimension | TensorProblem::ReshapeDimension => {
                "write -1 for a dimension of any size"
            }
            TensorProblem::ReshapeVariables => "write -1 as often in `reshape` as in `dims`",
            TensorProblem::ReshapeSize => {
                "the sizes in `reshape` must have the same product as those in `dims`"
            }
        },
    };
    Some(text.to_owned())
}

fn batch_io(error: &BatchIoError, raw: &RawModelConfig) -> Option<String> {
    Some(match error {
        BatchIoError::UnknownKind { .. } => {
            "write a kind by its name, for example `BATCH_ELEMENT_COUNT`".to_owned()
        }
        BatchIoError::SourceCount { .. } => {
            "name one input of the model in `source_input`".to_owned()
        }
        BatchIoError::DataType => {
            "write `data_type: TYPE_FP32` or `data_type: TYPE_INT32`".to_owned()
        }
        BatchIoError::UnknownSource(name) => {
            nearest("input", name, raw.input.iter().map(|i| i.name.as_str()))?
        }
        BatchIoError::UnknownTarget(name) => {
            nearest("output", name, raw.output.iter().map(|o| o.name.as_str()))?
        }
        BatchIoError::RepeatedTarget(_) | BatchIoError::RepeatedInput(_) => {
            "remove one of them".to_owned()
        }
    })
}

fn instance_group(error: &InstanceGroupError) -> &'static str {
    match error {
        InstanceGroupError::None { .. } => "write `instance_group [ { count: 1 } ]`",
        InstanceGroupError::ProfileWithoutTensorrt { .. }
        | InstanceGroupError::EmptyProfile
        | InstanceGroupError::InvalidProfile { .. } => {
            "remove `profile`: no TensorRT engine runs in this server"
        }
        InstanceGroupError::Kind { problem, .. } => match problem {
            KindProblem::GpusNotUsed { .. } => "remove `gpus`, or write `kind: KIND_GPU`",
            KindProblem::NoSupport | KindProblem::NoneAvailable => {
                "this server sees no GPU: write `kind: KIND_CPU`, leave out `kind` to use a GPU where there is one, or give the \
                 server `--gpu-groups=cpu`, which runs such groups on the CPU. If the machine has a GPU, look whether \
                 `nvidia-smi` finds it"
            }
            KindProblem::UnknownGpu { available, .. } if available.is_empty() => {
                "this server sees no GPU: write `kind: KIND_CPU` without `gpus`, or give the server `--gpu-groups=cpu`, which \
                 runs such groups on the CPU. If the machine has a GPU, look whether `nvidia-smi` finds it"
            }
            KindProblem::UnknownGpu { .. } => "leave out `gpus` to use all there are",
            KindProblem::NoneNamed => "name them, for example `gpus: [ 0 ]`",
            KindProblem::Auto => "write `kind: KIND_CPU` or `kind: KIND_GPU`",
            KindProblem::Unknown(_) => {
                "write `KIND_AUTO`, `KIND_CPU`, `KIND_GPU` or `KIND_MODEL`, or leave out `kind`"
            }
        },
    }
}

fn batching(error: &BatchingError, raw: &RawModelConfig) -> String {
    let most = raw.max_batch_size;
    match error {
        BatchingError::PreferredNotPositive { .. } => {
            "remove it: batches are as large as `max_batch_size` allows without it".to_owned()
        }
        BatchingError::PreferredTooLarge { .. } if most == 0 => {
            "`max_batch_size` is 0, so that nothing is batched: set it to the largest batch of the model".to_owned()
        }
        BatchingError::PreferredTooLarge { .. } => {
            format!("`max_batch_size` is {most}: raise it, or prefer smaller batches")
        }
        BatchingError::DefaultPriority { .. } => {
            "write `default_priority_level: 1` for the highest, or remove `priority_levels`".to_owned()
        }
        BatchingError::PolicyPriority { .. } => {
            "raise `priority_levels`, or remove the policy of that level".to_owned()
        }
        BatchingError::OrderWithPriorities => {
            "remove `preserve_ordering` or `priority_levels`".to_owned()
        }
        BatchingError::OrderWithDelay => {
            "remove `preserve_ordering`, or write `timeout_action: REJECT`".to_owned()
        }
    }
}

fn sequence(error: &SequenceError, raw: &RawModelConfig) -> Option<String> {
    let text = match error {
        SequenceError::NoControlName => {
            "write `name: \"...\"`: the input of the model that takes the control"
        }
        SequenceError::RepeatedControlName(_) => {
            "list one `control_input` of that name, or give each input a name of its own"
        }
        SequenceError::RepeatedControl { .. } => "remove all but one of them",
        SequenceError::UnknownControl(_) => {
            "write `CONTROL_SEQUENCE_START`, `CONTROL_SEQUENCE_READY`, `CONTROL_SEQUENCE_END` or `CONTROL_SEQUENCE_CORRID`"
        }
        SequenceError::NoValues { .. } => "write for example `fp32_false_true: [ 0, 1 ]`",
        SequenceError::SeveralValues { .. } => {
            "keep the one that has the type of the model's input"
        }
        SequenceError::ValueCount { .. } => {
            "write the value for false and the one for true: `[ 0, 1 ]`"
        }
        SequenceError::CorrelationIdWithValues => "write `data_type: TYPE_UINT64` in their place",
        SequenceError::CorrelationIdType => "write `data_type: TYPE_UINT64`",
        SequenceError::SlotUtilization => "write a number from 0 to 1",
        SequenceError::Batching(error) => return Some(batching(error, raw)),
    };
    Some(text.to_owned())
}

fn state(error: &StateError) -> &'static str {
    match error {
        StateError::NoDataType { .. } => "write its type, for example `data_type: TYPE_FP32`",
        StateError::SeveralInitialStates { .. } => "remove all but one of them",
        StateError::OtherDataType { .. } => {
            "write the same `data_type` in `state` and `initial_state`"
        }
        StateError::NoName { .. } => "write `name: \"...\"`",
        StateError::OtherRank { .. } | StateError::OtherDimension { .. } => {
            "write the dimensions of the state, with a size for each -1"
        }
        StateError::Variable { .. } => "write a size in the place of each -1",
        StateError::NoData { .. } => "write `zero_data: true`, or `data_file: \"...\"`",
    }
}

fn warmup(error: &WarmupError) -> &'static str {
    match error {
        WarmupError::NoDataType { .. } => "write its type, for example `data_type: TYPE_FP32`",
        WarmupError::NoData { .. } => {
            "write `zero_data: true`, `random_data: true` or `input_data_file: \"...\"`"
        }
    }
}

fn of_ensemble(error: &EnsembleError, raw: &RawModelConfig) -> Option<String> {
    let text = match error {
        EnsembleError::OtherPlatform { .. } => {
            "write `platform: \"ensemble\"` and no `backend`, or remove `ensemble_scheduling`"
        }
        EnsembleError::NoScheduling { .. } => {
            "write `ensemble_scheduling { step [ { model_name: \"...\" model_version: -1 input_map { ... } output_map { \
             ... } } ] }`"
        }
        EnsembleError::InstanceGroup { .. } => {
            "remove `instance_group`: the models of the steps have their own"
        }
        EnsembleError::Optimization { .. } => {
            "remove `optimization`: the models of the steps have their own"
        }
        EnsembleError::Warmup { .. } => {
            "remove `model_warmup`: the models of the steps have their own"
        }
        EnsembleError::NoStep { .. } => {
            "write a `step [ { ... } ]` for each model that the ensemble runs"
        }
        EnsembleError::IncompleteStep { field: "model_name", .. } => {
            "write `model_name: \"...\"`: the folder of the model in the repository"
        }
        EnsembleError::IncompleteStep { .. } => {
            "write an entry per tensor: `key` is the name in the step's model, `value` the one in the ensemble"
        }
        EnsembleError::WrittenTwice { .. } => {
            "give one of the two another name in its `output_map`"
        }
        EnsembleError::NotUsed { side, tensor, .. } => return Some(not_used(side, tensor, raw)),
        EnsembleError::NotWritten { tensor: Some(tensor), .. } => {
            return Some(nothing_writes(tensor, raw));
        }
        EnsembleError::NotWritten { output, tensor: None, .. } => {
            return Some(nothing_writes(output, raw));
        }
        EnsembleError::Unused { tensor, .. } => return Some(unused(tensor, raw)),
    };
    Some(text.to_owned())
}

fn not_used(side: &str, tensor: &str, raw: &RawModelConfig) -> String {
    let map = if side == "input" { "input_map" } else { "output_map" };
    let fix = format!("name it as a `value` in the `{map}` of a step");
    with_nearest(tensor, ensemble::mapped(raw, map), &fix)
}

fn nothing_writes(tensor: &str, raw: &RawModelConfig) -> String {
    let written = ensemble::mapped(raw, "output_map");
    let inputs = raw.input.iter().map(|input| input.name.as_str());
    let others = written.into_iter().chain(inputs).filter(|name| *name != tensor).collect();
    let fix = format!(
        "`{tensor}` must be an input of the ensemble or a `value` in the `output_map` of a step that can run"
    );
    with_nearest(tensor, others, &fix)
}

fn unused(tensor: &str, raw: &RawModelConfig) -> String {
    if ensemble::mapped(raw, "output_map").contains(&tensor) {
        let read = ensemble::mapped(raw, "input_map").into_iter();
        let others = read.chain(raw.output.iter().map(|output| output.name.as_str())).collect();
        let fix = "remove the entry from the step's `output_map`, or use the tensor in another step or as an output";
        return with_nearest(tensor, others, fix);
    }
    nothing_writes(tensor, raw)
}

fn with_nearest(name: &str, known: Vec<&str>, fix: &str) -> String {
    let near = suggest::nearest(name, known.into_iter().filter(|known| *known != name));
    match near.first() {
        Some(near) => format!("did you mean `{near}`? Otherwise {fix}"),
        None => fix.to_owned(),
    }
}

fn nearest<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let known: Vec<_> = known.filter(|known| !known.is_empty()).collect();
    if let Some(near) = suggest::nearest(name, known.iter().copied()).first() {
        return Some(format!("did you mean `{near}`?"));
    }
    let listed: Vec<_> = known.iter().take(20).map(|name| format!("`{name}`")).collect();
    (!listed.is_empty()).then(|| format!("the model has {what} {}", listed.join(", ")))
}

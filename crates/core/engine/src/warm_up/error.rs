//! Errors of warm-up samples. Texts are Triton's if it has one.

use galatea_config::{Diagnostic, FieldPath, Warmup};
use galatea_types::{Error, Shape};

use super::{MAX_BYTES, SampleInput};

pub(super) fn batch_size(warmup: &Warmup, model: &str, max: u32) -> Error {
    let text = format!(
        "failed to run warmup sample '{}': batch size {} for '{model}', max allowed is {max}",
        warmup.name, warmup.batch_size
    );
    about(Error::invalid_arg(text), warmup, field_of(warmup).field("batch_size"))
}

pub(super) fn variable_dimension(warmup: &Warmup, input: &str) -> Error {
    let text = format!(
        "warmup setting expects all variable-size dimensions are specified for input '{input}'"
    );
    about(Error::invalid_arg(text), warmup, field_of_input(warmup, input).field("dims"))
}

pub(super) fn short_file(
    SampleInput { warmup, name, .. }: SampleInput<'_>,
    file: &str,
    expected: usize,
    got: u64,
) -> Error {
    let text = format!(
        "[request id: <id_unknown>] warmup setting expects {expected} bytes, but the data provided from {file} only has \
         {got} bytes"
    );
    about(Error::invalid_arg(text), warmup, field_of_input(warmup, name).field("input_data_file"))
}

pub(super) fn too_large(warmup: &Warmup, model: &str, input: &str, shape: &Shape) -> Error {
    let text = format!(
        "warm-up sample '{}' of model '{model}' is too large with input '{input}' of shape {shape}: the limit is \
         {MAX_BYTES} bytes for all samples together, and for the batch of one",
        warmup.name
    );
    about(Error::invalid_arg(text), warmup, field_of_input(warmup, input).field("dims"))
}

/// Returns the same error, for this field of a sample.
pub(super) fn about(error: Error, warmup: &Warmup, field: FieldPath) -> Error {
    let found = Diagnostic::error(error.message()).about(field);
    found.with_advice(advice(&warmup.name)).into_unplaced_error(error.code())
}

fn advice(sample: &str) -> String {
    format!("change the warm-up sample '{sample}', or the file that it names")
}

pub(super) fn field_of(warmup: &Warmup) -> FieldPath {
    FieldPath::from("model_warmup").index(warmup.index)
}

fn field_of_input(warmup: &Warmup, input: &str) -> FieldPath {
    field_of(warmup).field("inputs").named(input).field("value")
}

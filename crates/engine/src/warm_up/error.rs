//! What can be wrong with a warm-up sample. Texts are Triton's where it has one.

use galatea_config::{Diagnostic, FieldPath, Warmup};
use galatea_types::{Error, Shape};

use super::MAX_BYTES;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(
        "warmup setting expects all variable-size dimensions are specified for input '{input}'"
    )]
    VariableDimension { input: String },
    #[error(
        "[request id: <id_unknown>] warmup setting expects {expected} bytes, but the data provided from {file} only has \
         {got} bytes"
    )]
    ShortFile { expected: usize, file: String, got: u64 },
    #[error(
        "failed to run warmup sample '{sample}': batch size {size} for '{model}', max allowed is {max}"
    )]
    BatchSize { sample: String, size: u32, model: String, max: u32 },
    #[error(
        "warm-up sample '{sample}' of model '{model}' is too large with input '{input}' of shape {shape}: the limit is \
         {MAX_BYTES} bytes for all samples together, and for the batch of one"
    )]
    TooLarge { sample: String, model: String, input: String, shape: Shape },
}

pub(super) fn batch_size(warmup: &Warmup, model: &str, max: u32) -> Error {
    let (sample, size, model) = (warmup.name.clone(), warmup.batch_size, model.to_owned());
    let problem = Problem::BatchSize { sample, size, model, max };
    about(Error::invalid_arg(problem.to_string()), warmup, field_of(warmup).field("batch_size"))
}

pub(super) fn variable_dimension(warmup: &Warmup, input: &str) -> Error {
    let problem = Problem::VariableDimension { input: input.to_owned() };
    about(
        Error::invalid_arg(problem.to_string()),
        warmup,
        field_of_input(warmup, input).field("dims"),
    )
}

pub(super) fn short_file(
    warmup: &Warmup,
    input: &str,
    file: &str,
    (expected, got): (usize, u64),
) -> Error {
    let problem = Problem::ShortFile { expected, file: file.to_owned(), got };
    about(
        Error::invalid_arg(problem.to_string()),
        warmup,
        field_of_input(warmup, input).field("input_data_file"),
    )
}

pub(super) fn too_large(warmup: &Warmup, model: &str, input: &str, shape: &Shape) -> Error {
    let (sample, model) = (warmup.name.clone(), model.to_owned());
    let problem =
        Problem::TooLarge { sample, model, input: input.to_owned(), shape: shape.clone() };
    about(
        Error::invalid_arg(problem.to_string()),
        warmup,
        field_of_input(warmup, input).field("dims"),
    )
}

/// The same error, of this field of a sample.
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

//! Models that cannot be loaded. Texts are Triton's where it has them.

use std::path::PathBuf;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, DataType, Error, Shape};

/// Each names the model it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("unable to find '{}' for model '{model}'", path.display())]
    NoFile { model: String, path: PathBuf },
    #[error(
        "unable to load model '{model}', Triton openVINO backend supports only CPU device: instance group '{group}' is \
         for GPUs (KIND_GPU)"
    )]
    Gpu { model: String, group: String },
    #[error(
        "unable to load model '{model}': {what} {index} has no name in the model's file; give it one before the file is \
         saved, in Python: `model.{what}({index}).set_names({{'NAME'}})`"
    )]
    NoName { model: String, what: &'static str, index: usize },
    #[error(
        "unable to load model '{model}', {what} '{name}' has elements that no request can carry (of less than a byte, for \
         example)"
    )]
    ElementType { model: String, what: &'static str, name: String },
    #[error(
        "unable to load model '{model}', configuration expects datatype {} for {what} '{name}', model provides TYPE_{provided}",
        .expected.config_name()
    )]
    OtherType {
        model: String,
        what: &'static str,
        name: String,
        expected: DataType,
        provided: DataType,
    },
    #[error(
        "unable to load model '{model}', input '{input}' cannot be ragged or made from the batch: the model is compiled for \
         one size of batch (SKIP_OV_DYNAMIC_BATCHSIZE)"
    )]
    RaggedFixedBatch { model: String, input: String },
    #[error(transparent)]
    OtherShape(Box<OtherShape>),
    #[error(
        "model '{model}', tensor '{name}': for the model to support batching its first dimension must be the batch, but with \
         the batch {} the model gives it the shape {model_dims}",
        batch_text(*.batch)
    )]
    NoBatchDimension { model: String, name: String, model_dims: String, batch: i64 },
    #[error(
        "model '{model}', {what} '{name}' leaves the number of its dimensions open: the configuration must list them"
    )]
    OpenRank { model: String, what: &'static str, name: String },
    #[error("failed to load model '{model}': {cause}")]
    OpenVino {
        model: String,
        #[source]
        cause: Error,
    },
}

/// The model's shape is not the configured one.
#[derive(Debug, thiserror::Error)]
#[error(
    "model '{model}', tensor '{name}': the model expects {} dimensions (shape {model_dims}) but the model configuration \
     specifies {} dimensions (shape {config_dims}{})",
    .model_dims.len(), .config_dims.len(), if *.has_batching { ", batch dimension included" } else { "" }
)]
pub(crate) struct OtherShape {
    pub model: String,
    /// `input` or `output`.
    pub what: &'static str,
    pub name: String,
    pub model_dims: Shape,
    pub config_dims: Shape,
    pub has_batching: bool,
}

fn batch_text(batch: i64) -> String {
    match batch {
        ..0 => "left open".to_owned(),
        size => format!("of {size} items (max_batch_size)"),
    }
}

impl LoadError {
    fn code(&self) -> Code {
        match self {
            Self::NoFile { .. } => Code::Unavailable,
            Self::ElementType { .. } => Code::Unsupported,
            Self::OpenVino { .. } => Code::Internal,
            _ => Code::InvalidArg,
        }
    }

    /// Where the configuration says it, and what to write there.
    fn remedy(&self) -> Option<(FieldPath, String)> {
        let tensor = |what: &'static str, name: &str, field: &'static str| {
            FieldPath::from(what).named(name).field(field)
        };
        Some(match self {
            Self::Gpu { group, .. } => (
                FieldPath::from("instance_group").named(group).field("kind"),
                "write `kind: KIND_CPU`, or leave `kind` out".to_owned(),
            ),
            Self::OtherType { what, name, provided, .. } => (
                tensor(what, name, "data_type"),
                format!("write {}: texts and numbers are not converted", provided.config_name()),
            ),
            Self::OtherShape(other) => (
                tensor(other.what, &other.name, "dims"),
                format!(
                    "write `dims: {}`, or have the model's inputs changed with the parameter RESHAPE_IO_LAYERS = `YES`",
                    written(&other.model_dims, other.has_batching)
                ),
            ),
            Self::NoBatchDimension { .. } => (
                "max_batch_size".into(),
                "write `max_batch_size: 0` and whole shapes in `dims`; or, where the model is for one size of batch alone, \
                 that size and the parameter SKIP_OV_DYNAMIC_BATCHSIZE = `YES`"
                    .to_owned(),
            ),
            Self::RaggedFixedBatch { .. } => (
                FieldPath::from("parameters").named("SKIP_OV_DYNAMIC_BATCHSIZE"),
                "remove the parameter SKIP_OV_DYNAMIC_BATCHSIZE".to_owned(),
            ),
            Self::OpenRank { what, name, .. } => (
                tensor(what, name, "dims"),
                "list inputs and outputs with their `dims` in config.pbtxt".to_owned(),
            ),
            Self::NoFile { .. }
            | Self::NoName { .. }
            | Self::ElementType { .. }
            | Self::OpenVino { .. } => return None,
        })
    }
}

/// As a configuration has it, the batch left out.
fn written(dims: &Shape, has_batching: bool) -> String {
    let dims: Vec<String> =
        dims.iter().skip(usize::from(has_batching)).map(i64::to_string).collect();
    format!("[ {} ]", dims.join(", "))
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        if let Some((field, advice)) = error.remedy() {
            let found = Diagnostic::error(error.to_string()).about(field).with_advice(advice);
            return found.into_unplaced_error(error.code());
        }
        Error::new(error.code(), error.to_string()).with_source(error)
    }
}

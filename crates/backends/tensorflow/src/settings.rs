//! The parameters of a model, read and checked. Names and texts are Triton's.

use std::collections::BTreeMap;

use galatea_backend::{LoadContext, Settings as Source};
use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error, Result};

use crate::tensorflow::SessionOptions;

pub(crate) const GRAPH_TAG: &str = "TF_GRAPH_TAG";
pub(crate) const SIGNATURE_DEF: &str = "TF_SIGNATURE_DEF";
pub(crate) const INIT_OPS_FILE: &str = "TF_INIT_OPS_FILE";
/// Name of the graph to serve, and of its function, in TensorFlow's own exports.
pub(crate) const DEFAULT_TAG: &str = "serve";
pub(crate) const DEFAULT_SIGNATURE: &str = "serving_default";

/// Settings of a session from the model's configuration and the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Options of the session. TensorFlow chooses missing numbers of threads, and those that are 0: as many as cores.
    pub session: SessionOptions,
    /// Most instances that share a session. `None`: all.
    pub share_count: Option<usize>,
}

impl Settings {
    pub fn read(context: &LoadContext) -> Result<Self> {
        let config = &context.config;
        let parameters = Source::of_model(config.parameters());
        let model = config.name();
        let share_count = parameters.number::<i64>("MAX_SESSION_SHARE_COUNT")?;
        if share_count.is_some_and(|count| count <= 0) {
            return Err(out_of_range("MAX_SESSION_SHARE_COUNT", "positive", model));
        }
        Ok(Self {
            session: SessionOptions {
                intra_op_threads: threads("TF_NUM_INTRA_THREADS", &parameters, model)?,
                inter_op_threads: threads("TF_NUM_INTER_THREADS", &parameters, model)?,
                has_own_threads: is_on("TF_USE_PER_SESSION_THREADS", &parameters)?,
                soft_placement: Source::of(&context.backend_config)
                    .boolean("allow-soft-placement")?
                    .unwrap_or(true),
                graph_level: config.optimization().graph_level,
            },
            share_count: share_count.and_then(|count| usize::try_from(count).ok()),
        })
    }
}

fn threads(key: &'static str, parameters: &Source<'_>, model: &str) -> Result<i32> {
    match parameters.number::<i32>(key)?.unwrap_or(0) {
        ..0 => Err(out_of_range(key, "non-negative", model)),
        count => Ok(count),
    }
}

fn out_of_range(key: &'static str, wanted: &str, model: &str) -> Error {
    Diagnostic::error(format!(
        "parameter '{key}' must be {wanted} number for TensorFlow model '{model}'"
    ))
    .about(FieldPath::from("parameters").named(key).field("value").field("string_value"))
    .into_error(Code::InvalidArg)
}

/// Reads a switch. Triton's own example writes `yes`.
fn is_on(key: &str, parameters: &Source<'_>) -> Result<bool> {
    match parameters.get(key).map(str::to_ascii_lowercase).as_deref() {
        Some("yes" | "on") => Ok(true),
        Some("no" | "off") => Ok(false),
        _ => Ok(parameters.boolean(key)?.unwrap_or(false)),
    }
}

/// Returns a parameter that is a name; an empty one counts as not given.
pub(crate) fn name<'p>(parameters: &'p BTreeMap<String, String>, key: &str) -> Option<&'p str> {
    parameters.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
}

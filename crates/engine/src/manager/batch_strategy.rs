//! Custom batching strategies, libraries of Triton's that decide which requests join a batch: refused, because without them
//! batches would not be what their model was made for.

use std::path::Path;

use galatea_config::{Diagnostic, FieldPath, ModelConfig, Scheduling};
use galatea_types::{Error, Result};

use crate::repository::ModelFolder;

const FILE: &str = "batchstrategy.so";
const PARAMETER: &str = "TRITON_BATCH_STRATEGY_PATH";

#[derive(Debug, thiserror::Error)]
enum StrategyError {
    #[error(
        "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy"
    )]
    WithSequences,
    #[error(
        "parameter 'TRITON_BATCH_STRATEGY_PATH' of model '{model}' is not supported by this version of the server: it runs \
         no custom batching strategies"
    )]
    Parameter { model: String },
    #[error(
        "custom batching strategy '{file}' of model '{model}' is not supported by this version of the server"
    )]
    File { file: String, model: String },
}

impl From<StrategyError> for Error {
    fn from(error: StrategyError) -> Self {
        let text = error.to_string();
        let found = Diagnostic::error(text.as_str());
        let parameter = || FieldPath::from("parameters").named(PARAMETER);
        match error {
            StrategyError::WithSequences => Self::invalid_arg(text)
                .with_source(found.with_advice("remove the parameter").about(parameter())),
            StrategyError::Parameter { .. } => Self::unsupported(text).with_source(
                found
                    .with_advice("remove it, and 'dynamic_batching' alone decides what is joined")
                    .about(parameter()),
            ),
            StrategyError::File { .. } => Self::unsupported(text).with_source(found.with_advice(
                "remove the file, and 'dynamic_batching' alone decides what is joined",
            )),
        }
    }
}

/// Refuses a model that has a strategy. `backends`: the folder of the backends, if there is one.
///
/// A library is looked for where Triton does, and only for models that it would be used for.
pub(super) fn check(
    config: &ModelConfig,
    folder: &ModelFolder,
    versions: &[i64],
    backends: Option<&Path>,
) -> Result<()> {
    let model = config.name().to_string();
    let has_parameter = config.parameters().contains_key(PARAMETER);
    match config.scheduling() {
        Scheduling::Sequence(_) if has_parameter => Err(StrategyError::WithSequences.into()),
        Scheduling::Direct | Scheduling::Dynamic(_) if has_parameter => {
            Err(StrategyError::Parameter { model }.into())
        }
        Scheduling::Dynamic(_) => {
            let backend = config.backend();
            let of_version = |&v: &i64| (format!("{v}/{FILE}"), folder.version_dir(v));
            let of_model = (FILE.to_owned(), folder.path().to_owned());
            let of_backend = backends.map(|dir| (format!("{backend}/{FILE}"), dir.join(backend)));
            let places = versions.iter().map(of_version).chain([of_model]);
            let mut places = places.chain(of_backend);
            let found = places.find(|(_, dir)| dir.join(FILE).exists());
            found.map_or(Ok(()), |(file, _)| Err(StrategyError::File { file, model }.into()))
        }
        _ => Ok(()),
    }
}

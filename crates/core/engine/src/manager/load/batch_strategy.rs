//! Refuses custom batching strategies, Triton's libraries that decide which requests join a batch. Without its strategy, a
//! model would get batches that it was not made for.

use std::path::Path;

use galatea_config::{Diagnostic, FieldPath, ModelConfig, Scheduling};
use galatea_types::{Code, Result};

use crate::repository::ModelFolder;

const FILE: &str = "batchstrategy.so";
const PARAMETER: &str = "TRITON_BATCH_STRATEGY_PATH";

/// Refuses a model that has a strategy. `backends` is the folder of the backends, if there is one.
///
/// A library is searched in Triton's places, and only for models that would use it.
pub(super) fn check(
    config: &ModelConfig,
    folder: &ModelFolder,
    versions: &[i64],
    backends: Option<&Path>,
) -> Result<()> {
    let model = config.name();
    let has_parameter = config.parameters().contains_key(PARAMETER);
    let unsupported = |what: &str| {
        let advice = format!("remove {what}, and 'dynamic_batching' alone forms batches");
        (Code::Unsupported, advice)
    };
    let (text, (code, advice)) = match config.scheduling() {
        Scheduling::Sequence(_) if has_parameter => {
            let text = format!(
                "{PARAMETER} cannot be specified with sequence batcher, using default batching strategy"
            );
            (text, (Code::InvalidArg, "remove the parameter".to_owned()))
        }
        Scheduling::Direct | Scheduling::Dynamic(_) if has_parameter => {
            let text = format!(
                "parameter '{PARAMETER}' of model '{model}' is not supported by this version of the server: it runs no \
                 custom batching strategies"
            );
            (text, unsupported("it"))
        }
        Scheduling::Dynamic(_) => {
            let backend = config.backend();
            let of_version = |&v: &i64| (format!("{v}/{FILE}"), folder.version_dir(v));
            let of_model = (FILE.to_owned(), folder.path().to_owned());
            let of_backend = backends.map(|dir| (format!("{backend}/{FILE}"), dir.join(backend)));
            let places = versions.iter().map(of_version).chain([of_model]);
            let mut places = places.chain(of_backend);
            let Some((file, _)) = places.find(|(_, dir)| dir.join(FILE).exists()) else {
                return Ok(());
            };
            let text = format!(
                "custom batching strategy '{file}' of model '{model}' is not supported by this version of the server"
            );
            (text, unsupported("the file"))
        }
        _ => return Ok(()),
    };
    let mut found = Diagnostic::error(text).with_advice(advice);
    if has_parameter {
        found = found.about(FieldPath::from("parameters").named(PARAMETER));
    }
    Err(found.into_unplaced_error(code))
}

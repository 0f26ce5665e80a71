//! Label files: the names of an output's classes.

use std::{collections::BTreeMap, fs, io, path::Path};

use galatea_config::ModelConfig;
use galatea_types::Error;

/// The labels of each output that has them, by class.
pub(crate) type Labels = BTreeMap<String, Vec<String>>;

/// A label file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read label file {path} of output '{output}': {source}")]
pub(crate) struct LabelError {
    output: String,
    path: String,
    source: io::Error,
}

impl From<LabelError> for Error {
    fn from(error: LabelError) -> Self {
        Self::internal(error.to_string()).with_source(error)
    }
}

/// Reads the label files that the configuration names: one label per line.
pub(crate) fn read(config: &ModelConfig, model_dir: &Path) -> Result<Labels, LabelError> {
    let mut labels = Labels::new();
    for output in config.outputs() {
        let Some(file) = &output.label_filename else { continue };
        let path = model_dir.join(file);
        let text = fs::read_to_string(&path).map_err(|source| LabelError {
            output: output.name.to_string(),
            path: path.display().to_string(),
            source,
        })?;
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        labels.insert(output.name.to_string(), lines.collect());
    }
    Ok(labels)
}

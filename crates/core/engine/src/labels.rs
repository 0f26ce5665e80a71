//! Label files, which name the classes of an output.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use galatea_backend::relative_inside;
use galatea_config::{ModelConfig, Scheduling};

use crate::{model_file::ModelFileError, repository::read_text_file};

/// The label files of outputs. An ensemble shares those of its steps.
pub(crate) type Labels = BTreeMap<String, Arc<LabelFile>>;

/// One label per line. The text is kept as a whole: a file of short lines costs a small multiple of its size.
#[derive(Debug, Default)]
pub(crate) struct LabelFile {
    text: String,
    /// The start of each line, and the end of the last one. Files are shorter than 4 GiB.
    starts: Vec<u32>,
}

impl LabelFile {
    fn new(text: String) -> Self {
        let mut starts: Vec<u32> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            starts.push(at);
            at += u32::try_from(line.len()).unwrap_or(u32::MAX - at);
        }
        starts.push(at);
        Self { text, starts }
    }

    /// Returns the label of a class; `None` for an empty line.
    pub fn get(&self, class: usize) -> Option<&str> {
        let (start, end) = (self.starts.get(class)?, self.starts.get(class.checked_add(1)?)?);
        let label = self.text.get(*start as usize..*end as usize)?.trim_end();
        (!label.is_empty()).then_some(label)
    }
}

/// Reads the label files that the configuration names: one label per line.
pub(crate) fn read(config: &ModelConfig, model_dir: &Path) -> Result<Labels, ModelFileError> {
    let mut labels = Labels::new();
    for output in config.outputs() {
        let Some(file) = &output.label_filename else { continue };
        // Paths out of the folder were refused before; this is a second check.
        let inside = relative_inside(file).ok_or(io::ErrorKind::InvalidFilename.into());
        let text = inside.and_then(|inside| read_text_file(&model_dir.join(inside)));
        let text = text.map_err(|source| ModelFileError {
            model: config.name().to_string(),
            path: file.clone(),
            missing: "put the file there, or take label_filename out of the configuration",
            source,
        })?;
        labels.insert(output.name.to_string(), Arc::new(LabelFile::new(text)));
    }
    Ok(labels)
}

/// Gives an output of an ensemble without a label file the labels of the step that makes it. `of_step` returns the labels
/// of a step's model, by the step's number.
pub(crate) fn inherit<'a>(
    labels: &mut Labels,
    config: &ModelConfig,
    of_step: impl Fn(usize) -> Option<&'a Labels>,
) {
    let Scheduling::Ensemble(ensembling) = config.scheduling() else { return };
    for (number, step) in ensembling.steps.iter().enumerate() {
        for (output, tensor) in &step.outputs {
            let file = of_step(number).and_then(|labels| labels.get(&**output));
            let is_output = config.outputs().iter().any(|own| *own.name == **tensor);
            if let Some(file) = file.filter(|_| is_output) {
                labels.entry(tensor.to_string()).or_insert_with(|| file.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_space_of_labels_is_removed() {
        let labels = LabelFile::new("cat \r\n\n  dog\nö".to_owned());
        let all: Vec<_> = (0..4).map(|class| labels.get(class)).collect();
        assert_eq!(all, [Some("cat"), None, Some("  dog"), Some("ö")]);
        assert_eq!((labels.get(4), labels.get(usize::MAX)), (None, None));
        let closed = LabelFile::new("a\nb\n".to_owned());
        assert_eq!((closed.get(1), closed.get(2)), (Some("b"), None));
        assert_eq!(LabelFile::new(String::new()).get(0), None);
    }
}

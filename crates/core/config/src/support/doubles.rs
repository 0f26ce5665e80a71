//! Warns of tensors that a configuration lists twice: as in Triton the model loads.

use std::collections::BTreeSet;

use crate::{Diagnostic, FieldPath, ModelConfig, TensorSpec};

/// Most warnings of inputs, and of outputs: a configuration may list thousands, and nobody would read more.
const MOST: usize = 5;

/// Returns a warning for each entry whose name was listed before.
pub(super) fn find(config: &ModelConfig) -> Vec<Diagnostic> {
    let inputs = repeated(config.inputs()).map(|(index, name)| {
        let text = format!(
            "input '{name}' of model '{}' is listed twice: every request is refused, because none can hold it twice",
            config.name()
        );
        warning("input", index, text)
    });
    let outputs = repeated(config.outputs()).map(|(index, name)| {
        let text = format!("output '{name}' of model '{}' is listed twice", config.name());
        warning("output", index, text)
    });
    inputs.chain(outputs).collect()
}

fn warning(side: &'static str, index: usize, text: String) -> Diagnostic {
    Diagnostic::warning(text)
        .about(FieldPath::from(side).index(index).field("name"))
        .with_advice("remove one of the two, or correct its name")
}

fn repeated(specs: &[TensorSpec]) -> impl Iterator<Item = (usize, &str)> {
    let mut seen = BTreeSet::new();
    let names = specs.iter().map(|spec| &*spec.name).enumerate();
    names.filter(move |(_, name)| !seen.insert(*name)).take(MOST)
}

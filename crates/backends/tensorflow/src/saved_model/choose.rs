//! Chooses the graph and the signature of a SavedModel to serve.

use std::collections::BTreeSet;

use galatea_backend::declared::listed;
use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Code, Error, Result};

use super::{MetaGraph, SavedModel};
use crate::{
    settings::{DEFAULT_SIGNATURE, DEFAULT_TAG, GRAPH_TAG, SIGNATURE_DEF},
    signature::Signature,
};

/// Names of signatures that the model itself creates. They cannot be called.
const INTERNAL: [&str; 2] = ["__saved_model_init_op", "__saved_model_train_op"];

/// Returns the error of a parameter that names a missing part of a SavedModel, in Triton's words, with the existing ones.
fn unexpected(model: &str, what: &str, all: &str, parameter: &'static str) -> Error {
    Diagnostic::error(format!("unable to load model '{model}', expected {what}; {all}"))
        .about(FieldPath::from("parameters").named(parameter))
        .with_advice(format!("name one of those in the parameter {parameter}"))
        .into_error(Code::InvalidArg)
}

impl SavedModel {
    /// Returns the signature that a configuration names, or the usual one. If the usual one is missing, returns the first
    /// that can be called.
    pub fn choose(
        self,
        model: &str,
        tag: Option<&str>,
        signature: Option<&str>,
    ) -> Result<Signature> {
        let graph = self.graph_of(model, tag.unwrap_or(DEFAULT_TAG))?;
        let is_internal = |name: &str| INTERNAL.contains(&name);
        let wanted = signature.unwrap_or(DEFAULT_SIGNATURE);
        let mut known = graph.signatures;
        if let Some(at) = known.iter().position(|known| known.name == wanted) {
            return Ok(known.swap_remove(at));
        }
        known.retain(|known| !is_internal(&known.name));
        let names: BTreeSet<&str> = known.iter().map(|known| known.name.as_str()).collect();
        if let Some(signature) = signature {
            let all = format!("its signatures are: {}", listed(&names));
            return Err(unexpected(
                model,
                &format!("'{signature}' signature"),
                &all,
                SIGNATURE_DEF,
            ));
        }
        let first = known.into_iter().next();
        let first = first.ok_or_else(|| {
            let text = "it has no signature that can be called";
            Diagnostic::error(format!("unable to load model '{model}', {text}"))
                .with_advice(
                    "save it with a signature: tf.saved_model.save(module, path, \
                     signatures={'serving_default': function}), or model.export(path) of Keras",
                )
                .into_error(Code::InvalidArg)
        })?;
        log::warn!(
            "model '{model}' has no signature '{DEFAULT_SIGNATURE}': its signature '{}' is served ({SIGNATURE_DEF} names \
             another one)",
            first.name
        );
        Ok(first)
    }

    fn graph_of(self, model: &str, tag: &str) -> Result<MetaGraph> {
        let tags: BTreeSet<String> = self.graphs.iter().map(|graph| graph.tags.join("+")).collect();
        // TensorFlow looks for a graph with exactly these tags.
        let found = self.graphs.into_iter().find(|graph| graph.tags == [tag]);
        found.ok_or_else(|| {
            let names = tags.iter().map(String::as_str).collect();
            let all = format!("the tags of its graphs are: {}", listed(&names));
            unexpected(model, &format!("'{tag}' tag"), &all, GRAPH_TAG)
        })
    }
}

//! The inputs and outputs that a model file declares.

use std::collections::BTreeSet;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{Error, Result, suggest};

use crate::ort::{Session, TensorInfo};

/// What a model takes and gives.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// Inputs every request must bring.
    pub inputs: Vec<TensorInfo>,
    /// Initialisers listed as inputs: a request may bring them.
    pub initializers: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
}

impl Signature {
    pub fn read(session: &Session) -> Result<Self> {
        Ok(Self {
            inputs: session.inputs()?,
            initializers: session.overridable_initializers()?,
            outputs: session.outputs()?,
        })
    }

    pub fn input(&self, name: &str) -> Option<&TensorInfo> {
        self.inputs.iter().chain(&self.initializers).find(|t| t.name == name)
    }

    pub fn output(&self, name: &str) -> Option<&TensorInfo> {
        self.outputs.iter().find(|t| t.name == name)
    }

    /// Whether every input and output leaves its first dimension open.
    pub fn can_batch(&self) -> bool {
        self.inputs.iter().chain(&self.outputs).all(|t| t.dims.first() == Some(&-1))
    }

    /// The input of this name, or Triton's text for one the model does not have.
    pub fn expect_input(&self, name: &str) -> Result<&TensorInfo> {
        self.input(name)
            .ok_or_else(|| unexpected("input", name, self.inputs.iter().chain(&self.initializers)))
    }

    pub fn expect_output(&self, name: &str) -> Result<&TensorInfo> {
        self.output(name).ok_or_else(|| unexpected("output", name, self.outputs.iter()))
    }
}

fn unexpected<'a>(
    what: &'static str,
    name: &str,
    allowed: impl Iterator<Item = &'a TensorInfo>,
) -> Error {
    let names: BTreeSet<&str> = allowed.map(|t| t.name.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let text =
        format!("unexpected inference {what} '{name}', allowed {what}s are: {}", names.join(", "));
    // Of one letter all others are near.
    let may_be_near = name.chars().count() > 1;
    let near = suggest::nearest(name, names.iter().copied().filter(|_| may_be_near));
    let found = Diagnostic::error(&*text).about(FieldPath::from(what).named(name).field("name"));
    Error::invalid_arg(text).with_source(match near.first() {
        Some(near) => found.with_advice(format!("did you mean '{near}'?")),
        None => found.with_advice(format!(
            "write the {what}s as the model names them, and remove what it does not have"
        )),
    })
}

//! What a model takes and gives, by the names that clients use.

use std::collections::BTreeSet;

use galatea_config::{Diagnostic, FieldPath};
use galatea_types::{DataType, Error, Result, Shape, suggest};

/// An input or output of a signature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorInfo {
    /// As clients know it: the key in the signature.
    pub name: String,
    /// As the graph knows it: `operation:index`. Empty for what is no single tensor.
    pub point: String,
    pub kind: ValueKind,
    /// Open dimensions are -1. `None`: not even the rank is known.
    pub dims: Option<Shape>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Tensor(DataType),
    /// A tensor of a type that no request can carry, by TensorFlow's number.
    OtherTensor(i32),
    /// A sparse tensor or another value of several tensors.
    Composite,
}

/// One function of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signature {
    pub name: String,
    /// Ordered by name.
    pub inputs: Vec<TensorInfo>,
    /// Ordered by name.
    pub outputs: Vec<TensorInfo>,
}

impl Signature {
    /// Whether every input and output leaves its first dimension open.
    pub fn can_batch(&self) -> bool {
        let is_open = |tensor: &TensorInfo| {
            tensor.dims.as_ref().is_some_and(|dims| dims.first() == Some(&-1))
        };
        self.inputs.iter().chain(&self.outputs).all(is_open)
    }

    /// The input of this name, or Triton's text for one that the model does not have.
    pub fn expect_input(&self, name: &str) -> Result<&TensorInfo> {
        expect("input", name, &self.inputs)
    }

    pub fn expect_output(&self, name: &str) -> Result<&TensorInfo> {
        expect("output", name, &self.outputs)
    }
}

fn expect<'t>(what: &'static str, name: &str, tensors: &'t [TensorInfo]) -> Result<&'t TensorInfo> {
    let found = tensors.iter().find(|tensor| tensor.name == name);
    found.ok_or_else(|| unexpected(what, name, tensors.iter().map(|tensor| tensor.name.as_str())))
}

/// A name that the model does not have.
pub(crate) fn unexpected<'a>(
    what: &'static str,
    name: &str,
    allowed: impl Iterator<Item = &'a str>,
) -> Error {
    let names: BTreeSet<&str> = allowed.collect();
    let text =
        format!("unexpected inference {what} '{name}', allowed {what}s are: {}", listed(&names));
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

/// Names for a text, of which a graph may have many.
pub(crate) fn listed(names: &BTreeSet<&str>) -> String {
    const MOST: usize = 30;
    let mut listed: Vec<String> = names
        .iter()
        .take(MOST)
        .map(|name| name.chars().flat_map(char::escape_debug).take(200).collect())
        .collect();
    if let Some(more) = names.len().checked_sub(MOST).filter(|&more| more > 0) {
        listed.push(format!("and {more} more"));
    }
    listed.join(", ")
}

//! What a model's file declares, and whether a configuration agrees with it. Texts and rules are Triton's.
//!
//! A backend describes its model as a [`Declaration`] of whatever it has read, each tensor a [`DeclaredTensor`].

mod check;
mod disagreement;
mod names;

use galatea_types::{DataType, Result, Shape};

pub use self::{
    check::{check_input_count, check_type},
    disagreement::Subject,
    names::{listed, unexpected},
};

/// An input or output as the model's file declares it.
pub trait DeclaredTensor {
    /// As a configuration and requests call it.
    fn name(&self) -> &str;

    /// What it holds.
    fn kind(&self) -> DeclaredKind;

    /// Batch dimension included, -1 where open. `None`: not even their number is known.
    fn dims(&self) -> Option<&Shape>;
}

/// What an input or output holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredKind {
    /// A tensor that requests can carry.
    Tensor(DataType),
    /// Something else.
    Other(UnsupportedKind),
}

/// What no request can carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedKind {
    /// E.g. `a sequence`.
    pub description: String,
    /// What to do about such an input.
    pub input_advice: Option<&'static str>,
    /// What to do about such an output.
    pub output_advice: Option<&'static str>,
}

/// What a model takes and gives.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a, T> {
    /// What every execution must be given.
    pub inputs: &'a [T],
    /// Inputs that the model has values of its own for. `None`: no model of this kind has any, and each input of a
    /// configuration stands for one of `inputs`.
    pub optional_inputs: Option<&'a [T]>,
    /// All outputs.
    pub outputs: &'a [T],
    /// How such a model is made one that takes batches, as `export the model with an open first dimension`.
    pub how_to_batch: &'static str,
}

impl<'a, T: DeclaredTensor> Declaration<'a, T> {
    fn all_inputs(&self) -> impl Iterator<Item = &'a T> {
        self.inputs.iter().chain(self.optional_inputs.unwrap_or_default())
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&'a T> {
        self.all_inputs().find(|tensor| tensor.name() == name)
    }

    /// The output of this name.
    pub fn output(&self, name: &str) -> Option<&'a T> {
        self.outputs.iter().find(|tensor| tensor.name() == name)
    }

    /// The input of this name.
    ///
    /// # Errors
    /// There is none: Triton's text.
    pub fn expect_input(&self, name: &str) -> Result<&'a T> {
        self.input(name)
            .ok_or_else(|| unexpected("input", name, self.all_inputs().map(DeclaredTensor::name)))
    }

    /// The output of this name.
    ///
    /// # Errors
    /// There is none: Triton's text.
    pub fn expect_output(&self, name: &str) -> Result<&'a T> {
        let all = || self.outputs.iter().map(DeclaredTensor::name);
        self.output(name).ok_or_else(|| unexpected("output", name, all()))
    }

    /// Whether every input and output leaves its first dimension open.
    pub fn can_batch(&self) -> bool {
        let is_open = |tensor: &T| tensor.dims().is_some_and(|dims| dims.first() == Some(&-1));
        self.inputs.iter().chain(self.outputs).all(is_open)
    }
}

//! Declarations of a model's file, and the check that a configuration agrees with them. Texts and rules are Triton's.
//!
//! A backend describes its model as a [`Declaration`] of what it has read. Each tensor is a [`DeclaredTensor`].

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
    /// The name used in configurations and requests.
    fn name(&self) -> &str;

    /// The kind of its content.
    fn kind(&self) -> DeclaredKind;

    /// The dimensions, including the batch; -1 for open ones. `None` if even their number is unknown.
    fn dims(&self) -> Option<&Shape>;
}

/// The kind of content of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredKind {
    /// A tensor that requests can carry.
    Tensor(DataType),
    /// A kind that requests cannot carry.
    Other(UnsupportedKind),
}

/// A kind of content that requests cannot carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedKind {
    /// For example `a sequence`.
    pub description: String,
    /// Advice for such an input.
    pub input_advice: Option<&'static str>,
    /// Advice for such an output.
    pub output_advice: Option<&'static str>,
}

/// The inputs and outputs of a model.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a, T> {
    /// The inputs that every execution needs.
    pub inputs: &'a [T],
    /// Inputs for which the model has its own values. `None` if models of this kind have none, so that each input of a
    /// configuration is one of `inputs`.
    pub optional_inputs: Option<&'a [T]>,
    /// All outputs.
    pub outputs: &'a [T],
    /// Advice on making such a model take batches, such as `export the model with an open first dimension`.
    pub how_to_batch: &'static str,
}

impl<'a, T: DeclaredTensor> Declaration<'a, T> {
    fn all_inputs(&self) -> impl Iterator<Item = &'a T> {
        self.inputs.iter().chain(self.optional_inputs.unwrap_or_default())
    }

    /// Returns the input with this name.
    pub fn input(&self, name: &str) -> Option<&'a T> {
        self.all_inputs().find(|tensor| tensor.name() == name)
    }

    /// Returns the output with this name.
    pub fn output(&self, name: &str) -> Option<&'a T> {
        self.outputs.iter().find(|tensor| tensor.name() == name)
    }

    /// Returns the input with this name.
    ///
    /// # Errors
    /// No such input, in Triton's words.
    pub fn expect_input(&self, name: &str) -> Result<&'a T> {
        self.input(name)
            .ok_or_else(|| unexpected("input", name, self.all_inputs().map(DeclaredTensor::name)))
    }

    /// Returns the output with this name.
    ///
    /// # Errors
    /// No such output, in Triton's words.
    pub fn expect_output(&self, name: &str) -> Result<&'a T> {
        let all = || self.outputs.iter().map(DeclaredTensor::name);
        self.output(name).ok_or_else(|| unexpected("output", name, all()))
    }

    /// Returns true if every input and output leaves its first dimension open.
    pub fn can_batch(&self) -> bool {
        let is_open = |tensor: &T| tensor.dims().is_some_and(|dims| dims.first() == Some(&-1));
        self.inputs.iter().chain(self.outputs).all(is_open)
    }
}

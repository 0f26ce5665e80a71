//! Requests that an instance executes before it takes those of clients.

use std::{collections::BTreeMap, sync::Arc};

use galatea_types::{DataType, Shape};

/// A sample that warms up every instance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warmup {
    /// Its index in `model_warmup`.
    pub index: usize,
    /// Its name in error messages.
    pub name: String,
    /// Items of the batch it makes. Never 0: such samples are left out, as Triton skips them.
    pub batch_size: u32,
    /// The number of executions. Never 0.
    pub count: u32,
    /// Inputs of the model by name.
    pub inputs: BTreeMap<Arc<str>, WarmupInput>,
}

/// An input of a warm-up request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WarmupInput {
    /// The type of its elements.
    pub data_type: DataType,
    /// The dimensions without the batch dimension.
    pub dims: Shape,
    /// The source of the elements.
    pub data: WarmupData,
}

/// The source of the elements of a warm-up request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WarmupData {
    /// All are 0, or empty.
    Zeros,
    /// Any bytes.
    Random,
    /// A file in the folder `warmup` of the model.
    File(String),
}

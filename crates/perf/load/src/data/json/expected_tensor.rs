//! The tensors that a step may hold.

use galatea_perf_types::model::{InputInfo, OutputInfo};
use galatea_types::DataType;

/// A tensor of the model that the step may hold.
pub(super) struct ExpectedTensor<'a> {
    pub name: &'a str,
    pub data_type: DataType,
    /// The shape without the batch dimension; -1 where it may vary.
    pub shape: &'a [i64],
    pub optional: bool,
    /// Inputs must have a shape. Expected outputs are compared by their bytes.
    pub needs_shape: bool,
}

impl<'a> ExpectedTensor<'a> {
    pub fn input(info: &'a InputInfo) -> Self {
        let InputInfo { name, data_type, shape, optional, .. } = info;
        Self { name, data_type: *data_type, shape, optional: *optional, needs_shape: true }
    }

    /// Returns the expectation for an output. Outputs that are not given are not compared.
    pub fn output(info: &'a OutputInfo) -> Self {
        let OutputInfo { name, data_type, shape } = info;
        Self { name, data_type: *data_type, shape, optional: true, needs_shape: false }
    }
}

//! The tensors that a step may hold.

use galatea_perf_types::model::{InputInfo, OutputInfo};
use galatea_types::DataType;

/// A tensor of the model that the step may hold.
pub(super) struct Wanted<'a> {
    pub name: &'a str,
    pub data_type: DataType,
    /// Without the batch dimension; -1 where it may vary.
    pub shape: &'a [i64],
    pub optional: bool,
    /// What is sent must have a shape; what is expected is compared by its bytes.
    pub needs_shape: bool,
}

impl<'a> Wanted<'a> {
    pub fn input(info: &'a InputInfo) -> Self {
        Self {
            name: &info.name,
            data_type: info.data_type,
            shape: &info.shape,
            optional: info.optional,
            needs_shape: true,
        }
    }

    pub fn output(info: &'a OutputInfo) -> Self {
        Self {
            name: &info.name,
            data_type: info.data_type,
            shape: &info.shape,
            // Outputs that are not given are not compared.
            optional: true,
            needs_shape: false,
        }
    }
}

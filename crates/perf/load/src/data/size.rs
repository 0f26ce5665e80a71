//! Arithmetic on shapes.

use galatea_types::DataType;

/// Elements of a tensor; `None` if a dimension is open or there are too many to count.
pub(super) fn element_count(shape: &[i64]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(usize::try_from(dim).ok()?))
}

/// Bytes of a tensor; `None` also for strings, whose size does not follow from the shape.
pub(super) fn byte_size(shape: &[i64], data_type: DataType) -> Option<usize> {
    element_count(shape)?.checked_mul(data_type.byte_size()?)
}

pub(super) fn is_open(shape: &[i64]) -> bool {
    shape.iter().any(|&dim| dim < 0)
}

/// `[2,-1]`
pub(super) fn shape_text(shape: &[i64]) -> String {
    let dims: Vec<String> = shape.iter().map(i64::to_string).collect();
    format!("[{}]", dims.join(","))
}

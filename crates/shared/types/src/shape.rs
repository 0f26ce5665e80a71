//! Dimensions, of tensors and of specifications.

use std::{fmt, ops::Deref};

use smallvec::SmallVec;

use crate::DataType;

/// Dimensions, outermost first. In a specification -1 means "any size"; in a tensor every dimension is known.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(SmallVec<[i64; 6]>);

/// Copies the dimensions at once, where the derived code copies one after the other.
impl Clone for Shape {
    fn clone(&self) -> Self {
        Self(SmallVec::from_slice(&self.0))
    }
}

impl Shape {
    /// Makes a shape without dimensions, for one element.
    pub fn scalar() -> Self {
        Self(SmallVec::new())
    }

    /// Returns the number of elements; 1 for a scalar. `None` when a dimension is negative or the product overflows.
    pub fn element_count(&self) -> Option<usize> {
        self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?))
    }

    /// Returns the bytes of a tensor of this shape; `None` for variable-sized elements, unknown dimensions, overflow.
    pub fn byte_size(&self, data_type: DataType) -> Option<usize> {
        self.element_count()?.checked_mul(data_type.byte_size()?)
    }

    /// Returns whether a dimension is open (-1).
    pub fn is_variable(&self) -> bool {
        self.0.iter().any(|&d| d < 0)
    }

    /// Returns whether `concrete` fits this specification: same rank, equal wherever this one is not -1.
    pub fn admits(&self, concrete: &[i64]) -> bool {
        self.0.len() == concrete.len()
            && self
                .0
                .iter()
                .zip(concrete)
                .all(|(&spec, &d)| if spec < 0 { d >= 0 } else { spec == d })
    }

    /// Returns this shape with `dim` before it.
    pub fn with_leading(&self, dim: i64) -> Self {
        let mut dims = SmallVec::with_capacity(self.0.len() + 1);
        dims.push(dim);
        dims.extend_from_slice(&self.0);
        Self(dims)
    }

    /// Appends an innermost dimension.
    pub fn push(&mut self, dim: i64) {
        self.0.push(dim);
    }

    /// Returns the dimensions, for changes.
    pub fn dims_mut(&mut self) -> &mut [i64] {
        &mut self.0
    }
}

impl Deref for Shape {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.0
    }
}

impl From<&[i64]> for Shape {
    fn from(dims: &[i64]) -> Self {
        Self(SmallVec::from_slice(dims))
    }
}

impl<const N: usize> From<[i64; N]> for Shape {
    fn from(dims: [i64; N]) -> Self {
        Self(SmallVec::from_slice(&dims))
    }
}

impl From<Vec<i64>> for Shape {
    fn from(dims: Vec<i64>) -> Self {
        Self(SmallVec::from_vec(dims))
    }
}

impl FromIterator<i64> for Shape {
    fn from_iter<T: IntoIterator<Item = i64>>(dims: T) -> Self {
        Self(dims.into_iter().collect())
    }
}

/// Formats as `[1,16]`, the form of every message.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_counts_detect_overflow() {
        assert_eq!(Shape::scalar().element_count(), Some(1));
        assert_eq!(Shape::from([2, 3]).byte_size(DataType::Fp64), Some(48));
        assert_eq!(Shape::from([-1, 3]).element_count(), None);
        assert_eq!(Shape::from([i64::MAX, 3]).element_count(), None);
        assert_eq!(Shape::from([i64::MAX]).byte_size(DataType::Int64), None);
    }

    #[test]
    fn specified_shapes_admit_matching_shapes() {
        assert!(Shape::from([-1, 16]).admits(&[4, 16]));
        assert!(!Shape::from([-1, 16]).admits(&[4, 15]));
        assert!(!Shape::from([16]).admits(&[1, 16]));
    }
}

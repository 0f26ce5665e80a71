//! `reshape` of a configuration: clients and model see different dimensions over the same elements.

use galatea_types::Shape;

/// `shape`, which fits `from`, in the form of `to`; as it is where it does not fit. Dimensions left open
/// are carried over in their order, a batch dimension stays in front.
pub(crate) fn carry(shape: &Shape, from: &Shape, to: &Shape, has_batching: bool) -> Shape {
    let (batch, dims) = shape.split_at(usize::from(has_batching).min(shape.len()));
    if !from.admits(dims) {
        return shape.clone();
    }
    let mut open = from.iter().zip(dims).filter(|(d, _)| **d < 0).map(|(_, &size)| size);
    let carried = to.iter().map(|&d| if d < 0 { open.next().unwrap_or(d) } else { d });
    batch.iter().copied().chain(carried).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_dimensions_are_carried_behind_the_batch() {
        let carry = |shape: &[i64], from: &[i64], to: &[i64], batch| {
            super::carry(&Shape::from(shape), &Shape::from(from), &Shape::from(to), batch)
        };
        assert_eq!(
            carry(&[7, 2, 4, 3], &[-1, 4, -1], &[-1, -1, 2, 2], true),
            [7, 2, 3, 2, 2].into()
        );
        assert_eq!(carry(&[1], &[1], &[], false), Shape::scalar());
        assert_eq!(carry(&[7, 5], &[6], &[2, 3], true), [7, 5].into());
    }
}

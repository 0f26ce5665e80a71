//! The configuration's `reshape`: clients and model see different dimensions over the same elements.

use galatea_types::Shape;

/// Reshapes `shape` from `from` to `to`, or returns it unchanged if it does not match `from`. Variable dimensions keep their
/// sizes in their order, a batch dimension stays in front.
pub(crate) fn apply(shape: &Shape, from: &Shape, to: &Shape, has_batching: bool) -> Shape {
    let (batch, dims) = shape.split_at(usize::from(has_batching).min(shape.len()));
    if !from.admits(dims) {
        return shape.clone();
    }
    let mut sizes = from.iter().zip(dims).filter(|(d, _)| **d < 0).map(|(_, &size)| size);
    let reshaped = to.iter().map(|&d| if d < 0 { sizes.next().unwrap_or(d) } else { d });
    batch.iter().copied().chain(reshaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_dimensions_keep_their_sizes() {
        let apply = |shape: &[i64], from: &[i64], to: &[i64], batch| {
            super::apply(&Shape::from(shape), &Shape::from(from), &Shape::from(to), batch)
        };
        assert_eq!(
            apply(&[7, 2, 4, 3], &[-1, 4, -1], &[-1, -1, 2, 2], true),
            [7, 2, 3, 2, 2].into()
        );
        assert_eq!(apply(&[1], &[1], &[], false), Shape::scalar());
        assert_eq!(apply(&[7, 5], &[6], &[2, 3], true), [7, 5].into());
    }
}

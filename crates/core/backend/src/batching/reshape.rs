//! Applies `reshape` of a configuration: clients and the model see different dimensions of the same elements.

use galatea_config::TensorSpec;
use galatea_types::Shape;

/// Converts a client's dimensions (without the batch) to those of the model. `is_scalar`: the model declares a tensor without
/// dimensions.
pub fn to_model(spec: &TensorSpec, is_scalar: bool, dims: &[i64]) -> Shape {
    match &spec.reshape {
        Some(target) => carry(&spec.dims, dims, target),
        // A scalar of the model is configured, and sent, as [1].
        None if is_scalar => Shape::scalar(),
        None => Shape::from(dims),
    }
}

/// Converts the model's dimensions (without the batch) to those that clients expect.
pub fn to_client(spec: &TensorSpec, dims: &[i64]) -> Shape {
    match &spec.reshape {
        Some(source) if source.admits(dims) => carry(source, dims, &spec.dims),
        None if dims.is_empty() && !spec.dims.is_variable() => spec.dims.clone(),
        _ => Shape::from(dims),
    }
}

/// Returns `target` with its open dimensions taken, in order, from the places of `actual` that are open in `pattern`.
fn carry(pattern: &[i64], actual: &[i64], target: &[i64]) -> Shape {
    let mut open = pattern.iter().zip(actual).filter(|(p, _)| **p < 0).map(|(_, &a)| a);
    target.iter().map(|&t| if t < 0 { open.next().unwrap_or(t) } else { t }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_dimensions_keep_their_order() {
        let carried = carry(&[-1, 4, -1], &[2, 4, 3], &[-1, -1, 2, 2]);
        assert_eq!(carried, Shape::from([2, 3, 2, 2]));
        assert_eq!(carry(&[1], &[1], &[]), Shape::scalar());
    }
}

//! `reshape` of a configuration: clients and model see different dimensions over the same elements.

use galatea_config::TensorSpec;
use galatea_types::Shape;

/// Dimensions (without the batch) as the model wants them, from those a client sent. `is_scalar`: the model
/// declares a tensor without dimensions.
pub fn to_model(spec: &TensorSpec, is_scalar: bool, dims: &[i64]) -> Shape {
    match &spec.reshape {
        Some(target) => carry(&spec.dims, dims, target),
        // A model's scalar is configured, and sent, as [1].
        None if is_scalar => Shape::scalar(),
        None => Shape::from(dims),
    }
}

/// Dimensions (without the batch) as clients expect them, from those the model gave.
pub fn to_client(spec: &TensorSpec, dims: &[i64]) -> Shape {
    match &spec.reshape {
        Some(source) if source.admits(dims) => carry(source, dims, &spec.dims),
        None if dims.is_empty() && !spec.dims.is_variable() => spec.dims.clone(),
        _ => Shape::from(dims),
    }
}

/// `target` with its open dimensions taken, in order, from where `pattern` has open ones in `actual`.
fn carry(pattern: &[i64], actual: &[i64], target: &[i64]) -> Shape {
    let mut open = pattern.iter().zip(actual).filter(|(p, _)| **p < 0).map(|(_, &a)| a);
    target.iter().map(|&t| if t < 0 { open.next().unwrap_or(t) } else { t }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_dimensions_are_carried_in_order() {
        let carried = carry(&[-1, 4, -1], &[2, 4, 3], &[-1, -1, 2, 2]);
        assert_eq!(carried, Shape::from([2, 3, 2, 2]));
        assert_eq!(carry(&[1], &[1], &[]), Shape::scalar());
    }
}

//! `reshape` of a configuration: clients and model see different dimensions over the same elements.

use galatea_types::Shape;

use crate::model::Port;

/// Dimensions (without the batch) as the model wants them, from those a client sent.
pub(crate) fn to_model(port: &Port, dims: &[i64]) -> Shape {
    match &port.spec.reshape {
        Some(target) => carry(&port.spec.dims, dims, target),
        // A model's scalar is configured, and sent, as [1].
        None if port.info.dims.is_empty() => Shape::scalar(),
        None => Shape::from(dims),
    }
}

/// Dimensions (without the batch) as clients expect them, from those the model gave.
pub(crate) fn to_client(port: &Port, dims: &[i64]) -> Shape {
    match &port.spec.reshape {
        Some(source) if source.admits(dims) => carry(source, dims, &port.spec.dims),
        None if dims.is_empty() && !port.spec.dims.is_variable() => port.spec.dims.clone(),
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

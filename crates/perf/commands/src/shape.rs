//! Completes the shape of an input from the number of its elements, or the nesting of its JSON.

use galatea_types::Shape;

/// The known part of a value's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownShape {
    /// A number of elements, in a row.
    Count(usize),
    /// Lists within lists.
    Nested(Vec<i64>),
    /// Any number that the model wants: one where it accepts any.
    Any,
}

/// The reason why a value does not fit the wanted shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ShapeError {
    #[error("{given} given; {fix}")]
    Count { given: String, fix: String },
    #[error("the JSON has the shape {given}")]
    Nested { given: String },
    #[error("with {given} given the shape is not clear; write them as JSON in nested lists")]
    Unclear { given: String },
    #[error("the shape has too many elements")]
    TooLarge,
}

/// Completes the shape. `wanted` has -1 where any size is possible.
pub(crate) fn complete(wanted: &[i64], given: &KnownShape) -> Result<Vec<i64>, ShapeError> {
    match given {
        KnownShape::Any => Ok(wanted.iter().map(|&size| if size < 0 { 1 } else { size }).collect()),
        KnownShape::Nested(shape) => nested(wanted, shape),
        KnownShape::Count(count) => of_count(wanted, *count),
    }
}

/// Completes a nested shape. A batch dimension of one may be left out.
fn nested(wanted: &[i64], shape: &[i64]) -> Result<Vec<i64>, ShapeError> {
    let fits = |wanted: &[i64]| {
        wanted.len() == shape.len()
            && wanted.iter().zip(shape).all(|(&wanted, &size)| wanted < 0 || wanted == size)
    };
    match wanted {
        _ if fits(wanted) => Ok(shape.to_vec()),
        [-1 | 1, rest @ ..] if fits(rest) => Ok([1].iter().chain(shape).copied().collect()),
        _ => Err(ShapeError::Nested { given: text(shape) }),
    }
}

fn of_count(wanted: &[i64], count: usize) -> Result<Vec<i64>, ShapeError> {
    let known = wanted.iter().filter(|&&size| size >= 0);
    let mut unit = known.map(|&size| usize::try_from(size).ok());
    let unit = unit.try_fold(1usize, |product, size| product.checked_mul(size?));
    let unit = unit.ok_or(ShapeError::TooLarge)?;
    let open: Vec<usize> = (0..wanted.len()).filter(|&at| wanted[at] < 0).collect();
    let mut shape: Vec<i64> = wanted.iter().map(|&size| if size < 0 { 1 } else { size }).collect();
    let is_multiple = unit > 0 && count > 0 && count.is_multiple_of(unit);
    match open[..] {
        _ if count == unit => Ok(shape),
        [at] | [0, at] if is_multiple => {
            shape[at] = i64::try_from(count / unit).map_err(|_| ShapeError::TooLarge)?;
            Ok(shape)
        }
        [_, _, ..] if is_multiple => Err(ShapeError::Unclear { given: elements(count) }),
        _ => Err(ShapeError::Count { given: elements(count), fix: fix(unit, open.is_empty()) }),
    }
}

fn fix(unit: usize, is_fixed: bool) -> String {
    let number =
        if is_fixed { elements(unit) } else { format!("a multiple of {}", elements(unit)) };
    format!("give {number}, or `zeros` or `random`")
}

fn elements(count: usize) -> String {
    format!("{count} element{}", if count == 1 { "" } else { "s" })
}

/// Returns a text such as `[2,16]`.
pub(crate) fn text(shape: &[i64]) -> String {
    Shape::from(shape).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_dimensions_are_completed_from_the_data() {
        for (wanted, given, expected) in [
            (&[-1, 16][..], KnownShape::Count(16), &[1, 16][..]),
            (&[-1, 16], KnownShape::Count(32), &[2, 16]),
            (&[-1, -1], KnownShape::Count(7), &[1, 7]),
            (&[-1, -1, 3], KnownShape::Count(6), &[1, 2, 3]),
            (&[-1, -1, -1], KnownShape::Count(1), &[1, 1, 1]),
            (&[4], KnownShape::Count(4), &[4]),
            (&[], KnownShape::Count(1), &[]),
            (&[-1, 2, 2], KnownShape::Nested(vec![2, 2]), &[1, 2, 2]),
            (&[-1, 2, 2], KnownShape::Nested(vec![3, 2, 2]), &[3, 2, 2]),
            (&[-1, 16], KnownShape::Any, &[1, 16]),
        ] {
            assert_eq!(complete(wanted, &given).as_deref(), Ok(expected), "{wanted:?} {given:?}");
        }
    }

    #[test]
    fn data_that_does_not_fit_is_refused_with_the_expected_shape() {
        for (wanted, given, expected) in [
            (
                &[-1, 16][..],
                KnownShape::Count(3),
                "3 elements given; give a multiple of 16 elements",
            ),
            (&[4], KnownShape::Count(1), "1 element given; give 4 elements, or `zeros`"),
            (&[-1, 0], KnownShape::Count(5), "5 elements given"),
            (&[2, -1, -1], KnownShape::Count(8), "nested lists"),
            (&[-1, 16], KnownShape::Nested(vec![4, 4]), "the JSON has the shape [4,4]"),
            (&[i64::MAX, 4], KnownShape::Count(8), "too many"),
        ] {
            let error = complete(wanted, &given).expect_err(expected).to_string();
            assert!(error.contains(expected), "{wanted:?}: {error}");
        }
    }
}

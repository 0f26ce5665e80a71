//! The classification extension: the best classes of an output, as text.

use std::cmp::Ordering;

use galatea_types::{DataType, Result, Shape, Tensor, byte_strings};

use crate::encode_error::EncodeError;

/// The `k` highest elements of `tensor` as a BYTES tensor of the same name: `value:index[:label]`, best
/// first, equal values in the order of their index.
///
/// With `is_batched` the first dimension is the batch and each row is ranked by itself, so the shape is
/// `[batch, min(k, row elements)]`; else all elements are ranked together, shape `[min(k, elements)]`.
/// `label` gives the text of a class, if it has one. Fails for data types without an order Triton knows
/// (BOOL, FP16, BF16, BYTES) and for data that does not fill the shape.
pub fn classify<'a>(
    tensor: &Tensor,
    k: u32,
    is_batched: bool,
    label: impl Fn(usize) -> Option<&'a str>,
) -> Result<Tensor> {
    let scores = scores_of(tensor)?;
    let rows = if is_batched { tensor.shape.first().copied().unwrap_or(1) } else { 1 };
    let row_count = usize::try_from(rows).unwrap_or(0);
    let row_len = scores.len().checked_div(row_count).unwrap_or(0);
    let kept = row_len.min(usize::try_from(k).unwrap_or(usize::MAX));
    let mut texts = Vec::with_capacity(row_count.min(scores.len()) * kept);
    for row in scores.chunks_exact(row_len.max(1)) {
        for index in best(row, kept) {
            texts.push(class_text(row.get(index), index, label(index)));
        }
    }
    let data = byte_strings::pack(&texts).map_err(|_| EncodeError::LabelTooLong)?;
    let mut shape = Shape::scalar();
    if is_batched {
        shape.push(rows);
    }
    shape.push(i64::try_from(kept).unwrap_or(i64::MAX));
    Ok(Tensor::new(tensor.name.clone(), DataType::Bytes, shape, data))
}

/// Integers are kept exact and print without decimals, as in Triton.
#[derive(Clone, Copy)]
enum Score {
    Integer(i128),
    Real(f64),
}

impl Score {
    /// Highest first; not-a-number last.
    fn descending(self, other: Self) -> Ordering {
        match (self, other) {
            (Score::Integer(a), Score::Integer(b)) => b.cmp(&a),
            (a, b) => {
                let (a, b) = (a.as_f64(), b.as_f64());
                b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Score::Integer(n) => n as f64,
            Score::Real(x) => x,
        }
    }
}

fn class_text(score: Option<&Score>, index: usize, label: Option<&str>) -> String {
    let value = match score {
        Some(Score::Integer(n)) => n.to_string(),
        Some(Score::Real(x)) => format!("{x:.6}"),
        None => String::new(),
    };
    match label {
        Some(label) => format!("{value}:{index}:{label}"),
        None => format!("{value}:{index}"),
    }
}

/// Indices of the `count` highest scores, best first.
fn best(row: &[Score], count: usize) -> Vec<usize> {
    let by_rank = |&a: &usize, &b: &usize| match (row.get(a), row.get(b)) {
        (Some(x), Some(y)) => x.descending(*y).then(a.cmp(&b)),
        _ => Ordering::Equal,
    };
    let mut indices: Vec<usize> = (0..row.len()).collect();
    if count < indices.len() {
        indices.select_nth_unstable_by(count, by_rank);
        indices.truncate(count);
    }
    indices.sort_unstable_by(by_rank);
    indices
}

fn scores_of(tensor: &Tensor) -> Result<Vec<Score>> {
    let data = tensor.host()?;
    let scores = match tensor.data_type {
        DataType::Uint8 => read(data, |b| Score::Integer(u8::from_le_bytes(b).into())),
        DataType::Uint16 => read(data, |b| Score::Integer(u16::from_le_bytes(b).into())),
        DataType::Uint32 => read(data, |b| Score::Integer(u32::from_le_bytes(b).into())),
        DataType::Uint64 => read(data, |b| Score::Integer(u64::from_le_bytes(b).into())),
        DataType::Int8 => read(data, |b| Score::Integer(i8::from_le_bytes(b).into())),
        DataType::Int16 => read(data, |b| Score::Integer(i16::from_le_bytes(b).into())),
        DataType::Int32 => read(data, |b| Score::Integer(i32::from_le_bytes(b).into())),
        DataType::Int64 => read(data, |b| Score::Integer(i64::from_le_bytes(b).into())),
        DataType::Fp32 => read(data, |b| Score::Real(f32::from_le_bytes(b).into())),
        DataType::Fp64 => read(data, |b| Score::Real(f64::from_le_bytes(b))),
        DataType::Bool | DataType::Fp16 | DataType::Bf16 | DataType::Bytes => {
            return Err(EncodeError::NoClasses(tensor.data_type).into());
        }
    };
    if tensor.shape.element_count() == Some(scores.len()) {
        return Ok(scores);
    }
    let (output, elements, shape) = (tensor.name.clone(), scores.len(), tensor.shape.clone());
    Err(EncodeError::ShapeMismatch { output, elements, shape }.into())
}

fn read<const N: usize>(data: &[u8], score: impl Fn([u8; N]) -> Score) -> Vec<Score> {
    let (elements, _) = data.as_chunks::<N>();
    elements.iter().map(|bytes| score(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 3] = ["cat", "dog", "bird"];

    fn fp32(shape: &[i64], values: &[f32]) -> Tensor {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::new("SCORES", DataType::Fp32, shape, data)
    }

    fn texts(tensor: &Tensor) -> Vec<String> {
        byte_strings::elements(tensor.host().expect("host memory"))
            .map(|e| String::from_utf8_lossy(e.expect("whole")).into_owned())
            .collect()
    }

    #[test]
    fn rows_are_ranked_each_by_itself() {
        let tensor = fp32(&[2, 4], &[0.5, 2.0, 1.0, -1.0, 3.0, 3.0, 0.0, 9.0]);
        let classes = classify(&tensor, 2, true, |i| LABELS.get(i).copied()).expect("classes");
        assert_eq!(&classes.shape[..], [2, 2]);
        assert_eq!(classes.data_type, DataType::Bytes);
        let expected = ["2.000000:1:dog", "1.000000:2:bird", "9.000000:3", "3.000000:0:cat"];
        assert_eq!(texts(&classes), expected);
    }

    #[test]
    fn without_batching_all_elements_are_one_row() {
        let tensor = fp32(&[2, 2], &[0.25, f32::NAN, 1e10, -0.5]);
        let classes = classify(&tensor, 9, false, |_| None).expect("classes");
        assert_eq!(&classes.shape[..], [4]);
        let expected = ["10000000000.000000:2", "0.250000:0", "-0.500000:3", "NaN:1"];
        assert_eq!(texts(&classes), expected);
    }

    #[test]
    fn integers_keep_all_digits() {
        let data: Vec<u8> = [u64::MAX, u64::MAX - 1].iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = Tensor::new("N", DataType::Uint64, [2], data);
        let classes = classify(&tensor, 1, false, |_| None).expect("classes");
        assert_eq!(texts(&classes), ["18446744073709551615:0"]);
    }

    #[test]
    fn odd_shapes_and_types_are_refused_or_empty() {
        let empty = classify(&fp32(&[0, 4], &[]), 2, true, |_| None).expect("empty batch");
        assert_eq!((&empty.shape[..], empty.data.len()), (&[0, 0][..], 0));
        assert!(classify(&fp32(&[3], &[1.0]), 1, false, |_| None).is_err());
        assert!(classify(&fp32(&[-1], &[1.0]), 1, true, |_| None).is_err());
        let bytes = Tensor::new("B", DataType::Bytes, [0], Vec::new());
        let error = classify(&bytes, 1, false, |_| None).expect_err("no order");
        assert_eq!(
            error.message(),
            "class result not available for output due to unsupported type 'BYTES'"
        );
    }
}

//! The classification extension: the best classes of an output, as text.

use std::{cmp::Ordering, fmt, io::Write as _};

use galatea_types::{AlignedBlock, DataType, Result, Shape, Tensor, byte_strings};

use crate::encode_error::EncodeError;

/// The most elements of an output that is ranked, as in Triton 2.73.
const MOST_ELEMENTS: usize = 1_000_000;

/// Returns the `k` highest elements of `tensor` as a BYTES tensor with the same name: `value:index[:label]`, best
/// first. Equal values keep the order of their index.
///
/// With `is_batched` the first dimension is the batch and each row is ranked by itself, so the shape is
/// `[batch, min(k, row elements)]`. Otherwise all elements are ranked together, with the shape `[min(k, elements)]`.
/// `label` returns the text of a class, if it has one. Fails for data types that Triton cannot order (BOOL, FP16, BF16,
/// BYTES), data that does not fill the shape, and more than a million elements.
///
/// Takes one pass over the data and, besides the texts, memory for `2 * k` indices.
pub fn classify<'a>(
    tensor: &Tensor,
    k: u32,
    is_batched: bool,
    label: impl Fn(usize) -> Option<&'a str>,
) -> Result<Tensor> {
    let scores = scores_of(tensor)?;
    if scores.len() > MOST_ELEMENTS {
        let (output, elements) = (tensor.name.clone(), scores.len());
        return Err(EncodeError::TooManyClasses { output, elements, limit: MOST_ELEMENTS }.into());
    }
    let rows = if is_batched { tensor.shape.first().copied().unwrap_or(1) } else { 1 };
    let row_count = usize::try_from(rows).unwrap_or(0);
    let row_len = scores.len().checked_div(row_count).unwrap_or(0);
    let kept = row_len.min(usize::try_from(k).unwrap_or(usize::MAX));
    let mut classes = Classes::new(kept, row_count.min(scores.len()), row_len)?;
    for row in 0..if row_len > 0 { row_count } else { 0 } {
        let row = Row { scores: &scores, start: row * row_len, len: row_len };
        classes.push_best(&row, &label)?;
    }
    let mut shape = Shape::scalar();
    if is_batched {
        shape.push(rows);
    }
    shape.push(i64::try_from(kept).unwrap_or(i64::MAX));
    classes.texts.shrink_if_sparse();
    Ok(Tensor::new(tensor.name.clone(), DataType::Bytes, shape, classes.texts.freeze()))
}

/// The written classes of an output, and the memory for ranking it.
struct Classes {
    /// Classes of a row.
    kept: usize,
    texts: AlignedBlock,
    best: Vec<usize>,
    text: Vec<u8>,
}

/// The approximate bytes of the text of a class without a label.
const TEXT_SIZE: usize = 24;

impl Classes {
    fn new(kept: usize, row_count: usize, row_len: usize) -> Result<Self, EncodeError> {
        let mut best = Vec::new();
        best.try_reserve_exact(kept.saturating_mul(2).min(row_len))?;
        let size = kept.saturating_mul(row_count).saturating_mul(TEXT_SIZE);
        let texts = AlignedBlock::try_with_capacity(size)?;
        Ok(Self { kept, texts, best, text: Vec::new() })
    }

    /// Appends the texts of the best classes of a row, best first.
    fn push_best<'a>(
        &mut self,
        row: &Row<'_>,
        label: impl Fn(usize) -> Option<&'a str>,
    ) -> Result<(), EncodeError> {
        row.rank(self.kept, &mut self.best);
        for &index in &self.best {
            self.text.clear();
            // Writing to memory cannot fail.
            let _ = write!(self.text, "{}:{index}", row.score(index));
            if let Some(label) = label(index) {
                let _ = write!(self.text, ":{label}");
            }
            self.texts.try_reserve(byte_strings::packed_len(&self.text))?;
            byte_strings::push(&mut self.texts, &self.text)
                .map_err(|_| EncodeError::LabelTooLong)?;
        }
        Ok(())
    }
}

/// A score. Integers are kept exact and print without decimals, as in Triton.
#[derive(Clone, Copy)]
enum Score {
    Integer(i128),
    Real(f64),
}

impl Score {
    /// Orders the highest first and not-a-number last.
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

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Score::Integer(n) => n.fmt(f),
            Score::Real(x) => write!(f, "{x:.6}"),
        }
    }
}

struct Scores<'d> {
    data: &'d [u8],
    element_size: usize,
    read: fn(&[u8]) -> Score,
}

impl Scores<'_> {
    fn len(&self) -> usize {
        self.data.len() / self.element_size
    }

    /// Returns the score of an element. An index outside the data has the lowest.
    fn get(&self, index: usize) -> Score {
        let start = index * self.element_size;
        let bytes = self.data.get(start..start + self.element_size);
        bytes.map_or(Score::Real(f64::NAN), self.read)
    }
}

struct Row<'s> {
    scores: &'s Scores<'s>,
    start: usize,
    len: usize,
}

impl Row<'_> {
    fn score(&self, index: usize) -> Score {
        self.scores.get(self.start + index)
    }

    /// Sets `best` to the indices of the `count` highest scores, best first.
    fn rank(&self, count: usize, best: &mut Vec<usize>) {
        let by_rank =
            |&a: &usize, &b: &usize| self.score(a).descending(self.score(b)).then(a.cmp(&b));
        best.clear();
        let Some(last) = count.checked_sub(1) else { return };
        // It gathers twice as many and keeps the better half, which takes a few steps per element in all. From then on
        // it skips any score that is not better than the worst of those.
        let mut worst = None;
        for index in 0..self.len {
            if worst.is_some_and(|worst| by_rank(&worst, &index).is_lt()) {
                continue;
            }
            best.push(index);
            if best.len() == count.saturating_mul(2) {
                best.select_nth_unstable_by(last, by_rank);
                best.truncate(count);
                worst = best.last().copied();
            }
        }
        best.sort_unstable_by(by_rank);
        best.truncate(count);
    }
}

fn scores_of(tensor: &Tensor) -> Result<Scores<'_>> {
    let data = tensor.host()?;
    let read: fn(&[u8]) -> Score = match tensor.data_type {
        DataType::Uint8 => |b| Score::Integer(u8::from_le_bytes(element(b)).into()),
        DataType::Uint16 => |b| Score::Integer(u16::from_le_bytes(element(b)).into()),
        DataType::Uint32 => |b| Score::Integer(u32::from_le_bytes(element(b)).into()),
        DataType::Uint64 => |b| Score::Integer(u64::from_le_bytes(element(b)).into()),
        DataType::Int8 => |b| Score::Integer(i8::from_le_bytes(element(b)).into()),
        DataType::Int16 => |b| Score::Integer(i16::from_le_bytes(element(b)).into()),
        DataType::Int32 => |b| Score::Integer(i32::from_le_bytes(element(b)).into()),
        DataType::Int64 => |b| Score::Integer(i64::from_le_bytes(element(b)).into()),
        DataType::Fp32 => |b| Score::Real(f32::from_le_bytes(element(b)).into()),
        DataType::Fp64 => |b| Score::Real(f64::from_le_bytes(element(b))),
        DataType::Bool | DataType::Fp16 | DataType::Bf16 | DataType::Bytes => {
            return Err(EncodeError::NoClasses(tensor.data_type).into());
        }
    };
    let element_size = tensor.data_type.byte_size().unwrap_or(1);
    let scores = Scores { data, element_size, read };
    if tensor.shape.element_count() == Some(scores.len()) {
        return Ok(scores);
    }
    let (output, elements, shape) = (tensor.name.clone(), scores.len(), tensor.shape.clone());
    Err(EncodeError::ShapeMismatch { output, elements, shape }.into())
}

/// Returns the bytes of one element, whose length is that of its type.
fn element<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
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
    fn each_row_is_ranked_separately() {
        let tensor = fp32(&[2, 4], &[0.5, 2.0, 1.0, -1.0, 3.0, 3.0, 0.0, 9.0]);
        let classes = classify(&tensor, 2, true, |i| LABELS.get(i).copied()).expect("classes");
        assert_eq!(&classes.shape[..], [2, 2]);
        assert_eq!(classes.data_type, DataType::Bytes);
        let expected = ["2.000000:1:dog", "1.000000:2:bird", "9.000000:3", "3.000000:0:cat"];
        assert_eq!(texts(&classes), expected);
    }

    #[test]
    fn without_batching_all_elements_form_one_row() {
        let tensor = fp32(&[2, 2], &[0.25, f32::NAN, 1e10, -0.5]);
        let classes = classify(&tensor, 9, false, |_| None).expect("classes");
        assert_eq!(&classes.shape[..], [4]);
        let expected = ["10000000000.000000:2", "0.250000:0", "-0.500000:3", "NaN:1"];
        assert_eq!(texts(&classes), expected);
    }

    #[test]
    fn the_top_classes_are_found_in_any_order() {
        let scattered = |i: usize| (i * 7919 % 1000) as f32;
        let orders: [fn(usize) -> f32; 3] = [scattered, |i| i as f32, |i| -(i as f32)];
        for value in orders.into_iter().map(|order| move |i: usize| order(i)) {
            let values: Vec<f32> = (0..1000).map(value).collect();
            for k in [1, 3, 499, 500, 999, 1000, 5000] {
                let classes =
                    classify(&fp32(&[1000], &values), k, false, |_| None).expect("classes");
                let mut expected: Vec<usize> = (0..1000).collect();
                expected.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
                let expected = expected.iter().take(k as usize);
                let expected = expected.map(|&i| format!("{:.6}:{i}", values[i]));
                assert_eq!(texts(&classes), expected.collect::<Vec<_>>(), "{k}");
            }
        }
    }

    #[test]
    fn integers_keep_all_digits() {
        let data: Vec<u8> = [u64::MAX, u64::MAX - 1].iter().flat_map(|v| v.to_le_bytes()).collect();
        let tensor = Tensor::new("N", DataType::Uint64, [2], data);
        let classes = classify(&tensor, 1, false, |_| None).expect("classes");
        assert_eq!(texts(&classes), ["18446744073709551615:0"]);
    }

    #[test]
    fn unusual_shapes_and_types_are_refused_or_empty() {
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
        let many = Tensor::new("many", DataType::Uint8, [1_000_001], vec![0; 1_000_001]);
        let error = classify(&many, 1, false, |_| None).expect_err("too many");
        assert!(error.message().contains("'many' of 1000001 elements, 1000000 at most"), "{error}");
    }
}

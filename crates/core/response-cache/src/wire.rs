//! Responses as bytes, for stores outside this process.
//!
//! Anybody with access to the store can write anything. So reading checks every length and count before it uses it, and that the
//! bytes of each tensor match its data type and shape.

use bytes::Bytes;
use galatea_types::{DataType, ParameterValue, Parameters, Shape, Tensor, byte_strings};

use crate::Entry;

/// The first bytes of every response. Another form needs others.
const FORM: &[u8; 8] = b"galresp1";

/// More dimensions than any tensor has.
const MAX_RANK: u8 = 64;

/// The reason why bytes are no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They begin differently.
    #[error("it is not a response, or one of another version")]
    Form,
    /// They end too early or too late.
    #[error("it has another length than it says")]
    Length,
    /// A name or text is no UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// The data type does not exist, or not with this many dimensions.
    #[error("a tensor has an unknown data type or shape")]
    Type,
    /// The bytes of a tensor do not match its shape.
    #[error("the bytes of a tensor do not fit its shape")]
    Data,
    /// The kind of a parameter does not exist.
    #[error("a parameter is of an unknown kind")]
    Parameter,
}

/// Returns the bytes of a response.
pub fn encode(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::with_capacity(entry.byte_size());
    out.extend_from_slice(FORM);
    put_length(&mut out, entry.outputs().len());
    for output in entry.outputs() {
        put_text(&mut out, &output.name);
        let number = DataType::ALL.iter().position(|known| *known == output.data_type);
        out.push(number.unwrap_or(usize::from(u8::MAX)) as u8);
        out.push(output.shape.len() as u8);
        output.shape.iter().for_each(|dim| out.extend_from_slice(&dim.to_le_bytes()));
        out.extend_from_slice(&(output.data.len() as u64).to_le_bytes());
    }
    put_length(&mut out, entry.parameters().len());
    for (name, value) in entry.parameters() {
        put_text(&mut out, name);
        put_parameter(&mut out, value);
    }
    for output in entry.outputs() {
        // An entry's bytes are always in host memory.
        out.extend_from_slice(output.data.host().unwrap_or_default());
    }
    out
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends a value. Different values have different bytes.
pub(crate) fn put_parameter(out: &mut Vec<u8>, value: &ParameterValue) {
    let (kind, bits) = match value {
        ParameterValue::Bool(value) => (0, u64::from(*value)),
        ParameterValue::Int(value) => (1, value.cast_unsigned()),
        ParameterValue::Uint(value) => (2, *value),
        ParameterValue::Double(value) => (3, value.to_bits()),
        ParameterValue::String(value) => {
            out.push(4);
            return put_text(out, value);
        }
    };
    out.push(kind);
    out.extend_from_slice(&bits.to_le_bytes());
}

/// Reads the bytes that [`encode`] has written.
///
/// # Errors
/// [`DecodeError`] for anything else.
pub fn decode(bytes: Vec<u8>) -> Result<Entry, DecodeError> {
    let bytes = Bytes::from(bytes);
    let mut reader = Reader(&bytes);
    if reader.take(FORM.len()).map_err(|_| DecodeError::Form)? != FORM {
        return Err(DecodeError::Form);
    }
    let heads = reader.list(Reader::head)?;
    let parameters: Parameters = reader.list(Reader::named_parameter)?;
    let outputs = heads.into_iter().map(|head| {
        let data = reader.take(head.length)?;
        head.tensor(bytes.slice_ref(data))
    });
    let outputs: Vec<Tensor> = outputs.collect::<Result<_, _>>()?;
    if !reader.0.is_empty() {
        return Err(DecodeError::Length);
    }
    Entry::copy(&outputs, parameters).ok_or(DecodeError::Data)
}

/// A tensor without its bytes.
struct Head {
    name: String,
    data_type: DataType,
    shape: Shape,
    length: usize,
}

impl Head {
    fn tensor(self, data: Bytes) -> Result<Tensor, DecodeError> {
        let Self { name, data_type, shape, length } = self;
        let elements = shape.element_count().ok_or(DecodeError::Type)?;
        let fits = match data_type.byte_size() {
            Some(size) => elements.checked_mul(size) == Some(length),
            None => {
                let mut found = byte_strings::elements(&data);
                found.try_fold(0, |count, element| element.map(|_| count + 1)) == Ok(elements)
            }
        };
        if !fits {
            return Err(DecodeError::Data);
        }
        Ok(Tensor::new(name, data_type, shape, data))
    }
}

/// The remaining bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a list. Each element has bytes, so a count beyond the remaining bytes ends early.
    fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = u32::from_le_bytes(self.array()?);
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    fn text(&mut self) -> Result<String, DecodeError> {
        let length = u32::from_le_bytes(self.array()?);
        let text = self.take(length as usize)?;
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| DecodeError::Text)
    }

    fn head(&mut self) -> Result<Head, DecodeError> {
        let name = self.text()?;
        let number = usize::from(self.byte()?);
        let data_type = DataType::ALL.get(number).copied().ok_or(DecodeError::Type)?;
        let rank = self.byte()?;
        if rank > MAX_RANK {
            return Err(DecodeError::Type);
        }
        let dims = (0..rank).map(|_| self.array().map(i64::from_le_bytes));
        let shape: Shape = dims.collect::<Result<_, _>>()?;
        let length = usize::try_from(self.number()?).map_err(|_| DecodeError::Length)?;
        Ok(Head { name, data_type, shape, length })
    }

    fn named_parameter(&mut self) -> Result<(String, ParameterValue), DecodeError> {
        Ok((self.text()?, self.parameter()?))
    }

    fn parameter(&mut self) -> Result<ParameterValue, DecodeError> {
        Ok(match self.byte()? {
            0 => ParameterValue::Bool(self.number()? != 0),
            1 => ParameterValue::Int(self.number()?.cast_signed()),
            2 => ParameterValue::Uint(self.number()?),
            3 => ParameterValue::Double(f64::from_bits(self.number()?)),
            4 => ParameterValue::String(self.text()?),
            _ => return Err(DecodeError::Parameter),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Entry {
        let strings = byte_strings::pack(&["a", "", "cde"]).expect("short");
        let outputs = [
            Tensor::new("OUT", DataType::Fp32, [2, 1], vec![1; 8]),
            Tensor::new("text", DataType::Bytes, [3], strings),
            Tensor::new("none", DataType::Int64, [0, 4], Vec::new()),
            Tensor::new("scalar", DataType::Bool, Shape::scalar(), vec![1]),
        ];
        let parameters = vec![
            ("b".to_owned(), ParameterValue::Bool(true)),
            ("i".to_owned(), ParameterValue::Int(-5)),
            ("u".to_owned(), ParameterValue::Uint(u64::MAX)),
            ("d".to_owned(), ParameterValue::Double(0.5)),
            ("s".to_owned(), ParameterValue::String("ä".to_owned())),
        ];
        Entry::copy(&outputs, parameters).expect("in host memory")
    }

    #[test]
    fn entries_round_trip() {
        let entry = sample();
        let read = decode(encode(&entry)).expect("an answer");
        assert_eq!((read.outputs(), read.parameters()), (entry.outputs(), entry.parameters()));
        assert_eq!(read.byte_size(), entry.byte_size());
    }

    #[test]
    fn a_truncated_or_extended_entry_is_refused() {
        let whole = encode(&sample());
        for length in 0..whole.len() {
            assert!(decode(whole[..length].to_vec()).is_err(), "{length}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert_eq!(decode(longer).map(|_| ()), Err(DecodeError::Length));
        assert_eq!(decode(b"galresp2".to_vec()).map(|_| ()), Err(DecodeError::Form));
    }

    #[test]
    fn announced_counts_are_checked_against_the_length() {
        let mut text = FORM.to_vec();
        text.extend_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(text).map(|_| ()), Err(DecodeError::Length));
    }

    proptest! {
        /// No change of one byte gives an entry whose tensors lack bytes.
        #[test]
        fn changed_bytes_cause_no_panic(at in any::<proptest::sample::Index>(), to in any::<u8>()) {
            let mut bytes = encode(&sample());
            let at = at.index(bytes.len());
            bytes[at] = to;
            if let Ok(entry) = decode(bytes) {
                for output in entry.outputs() {
                    let expected = output.shape.byte_size(output.data_type);
                    prop_assert!(expected.is_none_or(|size| size == output.data.len()));
                }
            }
        }

        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode([&FORM[..], &bytes].concat());
        }
    }
}

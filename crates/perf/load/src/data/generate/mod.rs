//! Generated data: zeros or random.

use bytes::Bytes;
use galatea_perf_types::{
    model::{InputInfo, ModelInfo},
    settings::DataSettings,
};
use galatea_types::{DataType, Shape, byte_strings};

use super::{
    dataset::{Step, TensorData},
    error::{GenerateError, OpenShape},
};

/// Letters of random strings.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890 .?!";

/// Makes one step with data for every input, optional ones too. Data is the same on every run, so that runs can be compared.
pub(super) fn generate(
    model: &ModelInfo,
    settings: &DataSettings,
    random: bool,
) -> Result<Step, GenerateError> {
    let mut generator = Generator { settings, random, source: fastrand::Rng::with_seed(0) };
    if let Some(input) = model.inputs.iter().find(|input| input.is_shape_tensor) {
        return Err(GenerateError::ShapeTensor(input.name.clone()));
    }
    let inputs = model.inputs.iter().map(|input| generator.tensor(input).map(Some));
    Ok(Step { inputs: inputs.collect::<Result<_, _>>()?, expected: Vec::new() })
}

struct Generator<'a> {
    settings: &'a DataSettings,
    random: bool,
    source: fastrand::Rng,
}

impl Generator<'_> {
    fn tensor(&mut self, input: &InputInfo) -> Result<TensorData, GenerateError> {
        let count = Shape::from(&input.shape[..]).element_count();
        let count = count.ok_or_else(|| OpenShape(input.name.clone()))?;
        let data = match input.data_type.byte_size() {
            None => self.strings(count),
            Some(size) => count.checked_mul(size).and_then(|size| self.numbers(input, size)),
        };
        let data = data.ok_or_else(|| GenerateError::TooLarge(input.name.clone()))?;
        Ok(TensorData { shape: input.shape.clone(), data: Bytes::from(data) })
    }

    fn numbers(&mut self, input: &InputInfo, byte_size: usize) -> Option<Vec<u8>> {
        let mut data = allocate(byte_size)?;
        data.resize(byte_size, 0);
        if self.random {
            self.source.fill(&mut data);
            make_valid(&mut data, input.data_type);
        }
        Some(data)
    }

    /// Makes strings. They are random even with zero data: an empty string would be no load at all.
    fn strings(&mut self, count: usize) -> Option<Vec<u8>> {
        let given = self.settings.string_data.as_deref().filter(|text| !text.is_empty());
        let length = given.map_or(self.settings.string_length, str::len);
        let mut data = allocate(count.checked_mul(length.checked_add(size_of::<u32>())?)?)?;
        for _ in 0..count {
            match given {
                Some(text) => byte_strings::push(&mut data, text.as_bytes()).ok()?,
                None => byte_strings::push(&mut data, &self.random_string(length)).ok()?,
            }
        }
        Some(data)
    }

    fn random_string(&mut self, length: usize) -> Vec<u8> {
        (0..length).filter_map(|_| self.source.choice(LETTERS).copied()).collect()
    }
}

/// Returns an empty vector with room for `byte_size`; `None` instead of an abort if memory is too small.
fn allocate(byte_size: usize) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    data.try_reserve_exact(byte_size).ok()?;
    Some(data)
}

/// Makes random bytes valid: a bool is 0 or 1, and floats are finite, because JSON cannot carry others.
fn make_valid(data: &mut [u8], data_type: DataType) {
    match data_type {
        DataType::Bool => data.iter_mut().for_each(|byte| *byte &= 1),
        DataType::Fp16 => make_finite(data, 2, 0x7C00),
        DataType::Bf16 => make_finite(data, 2, 0x7F80),
        DataType::Fp32 => make_finite(data, 4, 0x7F80),
        DataType::Fp64 => make_finite(data, 8, 0x7FF0),
        _ => {}
    }
}

/// Makes floats finite. `exponent`: its bits in the upper 16; all of them set mean infinity or NaN.
fn make_finite(data: &mut [u8], size: usize, exponent: u16) {
    let lowest = exponent & exponent.wrapping_neg();
    for upper in data.chunks_exact_mut(size).filter_map(<[u8]>::last_chunk_mut::<2>) {
        let word = u16::from_le_bytes(*upper);
        if word & exponent == exponent {
            *upper = (word ^ lowest).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests;

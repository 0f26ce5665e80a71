//! The elements of the inputs of warm-up samples.

use std::{io, path::Path};

use fastrand::Rng;
use galatea_config::{Warmup, WarmupData, WarmupInput};
use galatea_types::{Buffer, DataType, Error, Result};

use super::{MAX_BYTES, SampleInput, error};
use crate::model_file::{DataFile, ModelFileError, Part, zeroed};

/// The model's folder for data files.
const FOLDER: &str = "warmup";

/// Makes the elements, and records how many bytes were made.
pub(super) struct Content<'a> {
    model: &'a str,
    model_dir: &'a Path,
    left: usize,
    /// Shared by all inputs of zeros.
    zeros: Buffer,
    /// Yields the same elements at each load.
    random: Rng,
}

impl<'a> Content<'a> {
    pub fn new(model: &'a str, model_dir: &'a Path) -> Self {
        let (zeros, random) = (Buffer::default(), Rng::with_seed(0));
        Self { model, model_dir, left: MAX_BYTES, zeros, random }
    }

    /// Makes the elements of an input, for one item.
    pub fn of(&mut self, name: &str, input: &WarmupInput, warmup: &Warmup) -> Result<Buffer> {
        if input.dims.is_variable() {
            return Err(error::variable_dimension(warmup, name));
        }
        let wanted = SampleInput { warmup, name, input };
        let size = self.size(wanted)?;
        let data = match (&input.data, input.data_type) {
            (WarmupData::Zeros, _) | (WarmupData::Random, DataType::Bytes) => {
                zeros(&mut self.zeros, size).map_err(|_| self.too_large(wanted))?
            }
            (WarmupData::Random, data_type) => {
                random(&mut self.random, size, data_type).map_err(|_| self.too_large(wanted))?
            }
            (WarmupData::File(file), DataType::Bytes) => self.strings(wanted, file)?,
            (WarmupData::File(file), _) => self.elements(wanted, file, size)?,
        };
        self.left -= data.len();
        Ok(data)
    }

    /// Returns the number of bytes of the elements. Strings are empty, except those of a file.
    fn size(&self, wanted: SampleInput<'_>) -> Result<usize> {
        let WarmupInput { data_type, dims, .. } = wanted.input;
        let element = data_type.byte_size().unwrap_or(size_of::<u32>());
        let size = dims.element_count().and_then(|count| count.checked_mul(element));
        size.filter(|&size| size <= self.limit(wanted)).ok_or_else(|| self.too_large(wanted))
    }

    /// Returns the largest number of bytes of the elements.
    fn limit(&self, SampleInput { warmup, .. }: SampleInput<'_>) -> usize {
        let of_batch = MAX_BYTES / usize::try_from(warmup.batch_size).unwrap_or(usize::MAX).max(1);
        self.left.min(of_batch)
    }

    fn too_large(&self, SampleInput { warmup, name, input }: SampleInput<'_>) -> Error {
        error::too_large(warmup, self.model, name, &input.dims)
    }

    /// Returns the whole file.
    fn strings(&self, wanted: SampleInput<'_>, file: &str) -> Result<Buffer> {
        let part = Part::AllUpTo(self.limit(wanted));
        self.read(file, part)?.map_err(|_| self.too_large(wanted))
    }

    /// Returns the first bytes of the file.
    fn elements(&self, wanted: SampleInput<'_>, file: &str, size: usize) -> Result<Buffer> {
        let too_short = |got| error::short_file(wanted, file, size, got);
        self.read(file, Part::First(size))?.map_err(too_short)
    }

    fn read(&self, name: &str, part: Part) -> Result<Result<Buffer, u64>, ModelFileError> {
        let missing = "put the file there, or take input_data_file out of the configuration";
        let (model, model_dir) = (self.model, self.model_dir);
        DataFile { model, model_dir, folder: FOLDER, name, missing }.read(part)
    }
}

/// Returns `size` bytes of the shared zeros, of which more are made if necessary.
fn zeros(known: &mut Buffer, size: usize) -> io::Result<Buffer> {
    if known.len() < size {
        *known = zeroed(size)?.freeze();
    }
    Ok(known.slice(0..size).unwrap_or_default())
}

/// Makes elements that suit every model: numbers with a fraction are from 1 to 2, truth values are 0 or 1.
fn random(random: &mut Rng, size: usize, data_type: DataType) -> io::Result<Buffer> {
    let mut block = zeroed(size)?;
    let bytes = block.as_mut_slice();
    random.fill(bytes);
    match data_type {
        DataType::Bool => bytes.iter_mut().for_each(|byte| *byte &= 1),
        DataType::Fp16 => keep_fraction(bytes, 0x03FF_u16.to_le_bytes(), 0x3C00_u16.to_le_bytes()),
        DataType::Bf16 => keep_fraction(bytes, 0x007F_u16.to_le_bytes(), 0x3F80_u16.to_le_bytes()),
        DataType::Fp32 => {
            keep_fraction(bytes, 0x007F_FFFF_u32.to_le_bytes(), 1_f32.to_le_bytes());
        }
        DataType::Fp64 => {
            let fraction = 0x000F_FFFF_FFFF_FFFF_u64;
            keep_fraction(bytes, fraction.to_le_bytes(), 1_f64.to_le_bytes());
        }
        _ => {}
    }
    Ok(block.freeze())
}

/// Keeps the bits of the fraction of every element and sets the others to those of `one`.
fn keep_fraction<const N: usize>(bytes: &mut [u8], fraction: [u8; N], one: [u8; N]) {
    for element in bytes.as_chunks_mut::<N>().0 {
        for ((byte, fraction), one) in element.iter_mut().zip(fraction).zip(one) {
            *byte = *byte & fraction | one;
        }
    }
}

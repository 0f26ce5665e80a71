//! Sound files (`.wav`) as tensors of samples.

use std::io::Cursor;

use galatea_types::DataType;
use hound::{SampleFormat, WavReader};

/// The reason why a file cannot become samples.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AudioError {
    #[error("the sound cannot be read: {0}")]
    Decode(#[from] hound::Error),
    #[error("samples become FP32 or INT16, not {0}")]
    Type(DataType),
    #[error("samples of {0} bits become FP32, not INT16")]
    Bits(u16),
}

/// The samples of one channel.
#[derive(Debug)]
pub(crate) struct Samples {
    pub data: Vec<u8>,
    pub count: usize,
    /// A note for the user that the model does not see: the rate, and that channels were mixed.
    pub note: String,
}

/// Reads samples. Floating-point samples are between -1 and 1; those of several channels are averaged.
pub(crate) fn read(file: &[u8], data_type: DataType) -> Result<Samples, AudioError> {
    let mut reader = WavReader::new(Cursor::new(file))?;
    let spec = reader.spec();
    let bits = spec.bits_per_sample;
    let range = 2f32.powi(i32::from(bits) - 1);
    let samples: Vec<f32> = match spec.sample_format {
        SampleFormat::Float => reader.samples::<f32>().collect::<Result<_, _>>()?,
        SampleFormat::Int => {
            let samples = reader.samples::<i32>().map(|sample| sample.map(|s| s as f32 / range));
            samples.collect::<Result<_, _>>()?
        }
    };
    let channels = usize::from(spec.channels).max(1);
    let mono =
        samples.chunks_exact(channels).map(|frame| frame.iter().sum::<f32>() / channels as f32);
    let data: Vec<u8> = match data_type {
        DataType::Fp32 => mono.flat_map(f32::to_le_bytes).collect(),
        DataType::Int16 if bits != 16 || spec.sample_format == SampleFormat::Float => {
            return Err(AudioError::Bits(bits));
        }
        DataType::Int16 => {
            mono.flat_map(|sample| ((sample * range).round() as i16).to_le_bytes()).collect()
        }
        other => return Err(AudioError::Type(other)),
    };
    let count = data.len() / data_type.byte_size().unwrap_or(1);
    let seconds = count as f64 / f64::from(spec.sample_rate.max(1));
    let mixed =
        if channels > 1 { format!(", {channels} channels mixed to one") } else { String::new() };
    Ok(Samples {
        data,
        count,
        note: format!("{} samples per second, {seconds:.2} s{mixed}", spec.sample_rate),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(channels: u16, samples: &[i16]) -> Vec<u8> {
        let spec = hound::WavSpec {
            channels,
            sample_rate: 8000,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).expect("a head");
        samples.iter().for_each(|&sample| writer.write_sample(sample).expect("memory"));
        writer.finalize().expect("memory");
        bytes.into_inner()
    }

    #[test]
    fn samples_are_decoded() {
        let one = read(&file(1, &[0, -32768, 16384]), DataType::Fp32).expect("samples");
        let expected: Vec<u8> = [0f32, -1.0, 0.5].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!((one.data, one.count), (expected, 3));
        let two = read(&file(2, &[100, 300, -5, -7]), DataType::Int16).expect("samples");
        assert_eq!(two.data, [200i16, -6].map(i16::to_le_bytes).concat());
        assert_eq!(two.note, "8000 samples per second, 0.00 s, 2 channels mixed to one");
        assert!(read(&file(1, &[1]), DataType::Int64).is_err());
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file(1, &[1, 2, 3]);
        for length in 0..whole.len() {
            assert!(read(&whole[..length], DataType::Fp32).is_err(), "{length}");
        }
    }
}

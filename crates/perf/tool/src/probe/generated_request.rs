//! Generated data: one request that nearly every model accepts, the same on every run.

use std::sync::Arc;

use galatea_client::{InferTemplate, InputData, InputTensor};
use galatea_perf_types::{
    failure::{Failure, Result},
    model::{InputInfo, ModelInfo},
    requests::{ExpectedOutput, RequestSource},
    settings::Settings,
};
use galatea_types::{DataType, Shape, byte_strings};
use half::{bf16, f16};

/// Most bytes of generated data for one input.
const MOST_MADE_UP: usize = 1 << 30;

/// One request whose numbers any model accepts: 0 to 1 with fractions, else 1, which nearly everywhere is a token, a mask
/// and an index. The tool's own random data has all bits random, from which networks make infinity.
pub(super) struct GeneratedRequest {
    template: Arc<InferTemplate>,
}

impl GeneratedRequest {
    pub fn new(settings: &Settings, model: &ModelInfo) -> Result<Self> {
        let batch = (model.max_batch_size > 0).then_some(settings.batch_size);
        let mut random = fastrand::Rng::with_seed(0);
        let mut inputs = Vec::new();
        for info in &model.inputs {
            inputs.push(made_up(info, batch, &mut random)?);
        }
        let template = InferTemplate {
            model: model.name.clone(),
            version: model.version.clone(),
            inputs,
            ..InferTemplate::default()
        };
        Ok(Self { template: Arc::new(template) })
    }
}

impl RequestSource for GeneratedRequest {
    fn stream_count(&self) -> usize {
        1
    }

    fn step_count(&self, _: usize) -> usize {
        1
    }

    fn template(&self, _: usize, _: usize) -> Arc<InferTemplate> {
        self.template.clone()
    }

    fn expected(&self, _: usize, _: usize) -> Option<&[ExpectedOutput]> {
        None
    }

    fn is_user_data(&self) -> bool {
        false
    }
}

fn made_up(
    info: &InputInfo,
    batch: Option<u64>,
    random: &mut fastrand::Rng,
) -> Result<InputTensor> {
    let batch = batch.map(|batch| i64::try_from(batch).unwrap_or(i64::MAX));
    let shape: Vec<i64> = batch.into_iter().chain(info.shape.iter().copied()).collect();
    let refuse = |reason: &str| {
        let (name, dims) = (&info.name, list(&info.shape));
        Failure::option(format!(
            "input '{name}' has the shape [{dims}]{reason}: give it by --shape={name}:<n>,<n>..., without the batch \
             dimension, or give data by --input-data"
        ))
    };
    if shape.iter().any(|&dim| dim < 0) {
        return Err(refuse(", in which -1 is any size"));
    }
    let count = Shape::from(&shape[..]).element_count();
    let count = count.filter(|&n| n <= MOST_MADE_UP / info.data_type.byte_size().unwrap_or(8));
    let count = count.ok_or_else(|| refuse(", which is too large"))?;
    let mut data = Vec::new();
    (0..count).for_each(|_| push(&mut data, info.data_type, random));
    Ok(InputTensor {
        name: info.name.clone(),
        data_type: info.data_type,
        shape,
        data: InputData::Inline(data.into()),
    })
}

fn push(data: &mut Vec<u8>, data_type: DataType, random: &mut fastrand::Rng) {
    match data_type {
        DataType::Fp16 => data.extend(f16::from_f32(random.f32()).to_le_bytes()),
        DataType::Bf16 => data.extend(bf16::from_f32(random.f32()).to_le_bytes()),
        DataType::Fp32 => data.extend(random.f32().to_le_bytes()),
        DataType::Fp64 => data.extend(random.f64().to_le_bytes()),
        // Four letters are not too long.
        DataType::Bytes => drop(byte_strings::push(data, b"text")),
        integer => {
            data.push(1);
            data.resize(data.len() + integer.byte_size().unwrap_or(1) - 1, 0);
        }
    }
}

fn list(dims: &[i64]) -> String {
    dims.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(data_type: DataType, shape: &[i64]) -> InputInfo {
        InputInfo {
            name: "x".to_owned(),
            data_type,
            shape: shape.to_vec(),
            is_shape_tensor: false,
            optional: false,
        }
    }

    fn bytes(info: &InputInfo, batch: Option<u64>) -> (Vec<i64>, Vec<u8>) {
        let tensor = made_up(info, batch, &mut fastrand::Rng::with_seed(0)).expect("made");
        let InputData::Inline(data) = tensor.data else { panic!("no region") };
        (tensor.shape, data.to_vec())
    }

    #[test]
    fn generated_values_are_plausible() {
        let (shape, data) = bytes(&info(DataType::Int64, &[2]), Some(1));
        assert_eq!(shape, [1, 2]);
        assert_eq!(data, [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&info(DataType::Bool, &[2]), None).1, [1, 1]);
        assert_eq!(bytes(&info(DataType::Bytes, &[1]), None).1, b"\x04\0\0\0text");
        let (_, data) = bytes(&info(DataType::Fp32, &[8]), None);
        let numbers = data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let numbers: Vec<_> = numbers.collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)) && numbers[0] != numbers[1]);
        assert_eq!(bytes(&info(DataType::Fp16, &[3]), None).1.len(), 6);
    }

    #[test]
    fn open_dimensions_are_reported_with_the_option() {
        let told = |shape: &[i64]| {
            let info = info(DataType::Fp32, shape);
            made_up(&info, Some(1), &mut fastrand::Rng::with_seed(0)).expect_err("open").message
        };
        assert_eq!(
            told(&[-1, 3]),
            "input 'x' has the shape [-1,3], in which -1 is any size: give it by --shape=x:<n>,<n>..., without the \
             batch dimension, or give data by --input-data"
        );
        assert!(told(&[i64::MAX, 2]).contains("too large"));
    }
}

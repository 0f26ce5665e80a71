//! The samples of `model_warmup`.

use std::collections::BTreeMap;

use galatea_proto::inference::{
    ModelWarmup,
    model_warmup::{Input, input::InputDataType},
};
use galatea_types::Result;

use super::{refuse, tensors::data_type};
use crate::{RawModelConfig, Warmup, WarmupData, WarmupInput};

/// Samples with a batch size of 0 are skipped, as Triton does.
pub(super) fn check(raw: &RawModelConfig) -> Result<Vec<Warmup>> {
    let samples = raw.model_warmup.iter().filter(|sample| sample.batch_size > 0);
    samples.map(|sample| check_sample(sample, &raw.name)).collect()
}

fn check_sample(sample: &ModelWarmup, model: &str) -> Result<Warmup> {
    let mut inputs = BTreeMap::new();
    for (name, input) in &sample.inputs {
        inputs.insert(name.as_str().into(), check_input(name, input, &sample.name, model)?);
    }
    Ok(Warmup {
        name: sample.name.clone(),
        batch_size: sample.batch_size,
        count: sample.count.max(1),
        inputs,
    })
}

fn check_input(name: &str, input: &Input, sample: &str, model: &str) -> Result<WarmupInput> {
    let Some(data_type) = data_type(input.data_type) else {
        return refuse(format!(
            "input '{name}' of warm-up sample '{sample}' must specify 'data_type' for {model}"
        ));
    };
    let data = match &input.input_data_type {
        Some(InputDataType::ZeroData(_)) => WarmupData::Zeros,
        Some(InputDataType::RandomData(_)) => WarmupData::Random,
        Some(InputDataType::InputDataFile(file)) => WarmupData::File(file.clone()),
        None => {
            return refuse(format!(
                "warmup setting expects input '{name}' to have input_data_type set"
            ));
        }
    };
    Ok(WarmupInput { data_type, dims: input.dims.as_slice().into(), data })
}

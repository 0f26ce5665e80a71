//! Checks the samples of `model_warmup`.

use galatea_proto::inference::{
    ModelWarmup,
    model_warmup::{Input, input::InputDataType},
};

use super::{
    data_type,
    mistake::{Result, element_of, inside, refuse},
};
use crate::{FieldPath, RawModelConfig, Warmup, WarmupData, WarmupInput};

/// Returns the samples. Those with a batch size of 0 are skipped, as Triton does.
pub(super) fn check(raw: &RawModelConfig) -> Result<Vec<Warmup>> {
    let samples = raw.model_warmup.iter().enumerate().filter(|(_, sample)| sample.batch_size > 0);
    let checked = |(index, sample)| {
        let field = element_of("model_warmup", index).field("inputs");
        check_sample(index, sample, &raw.name).map_err(inside(field))
    };
    samples.map(checked).collect()
}

fn check_sample(index: usize, sample: &ModelWarmup, model: &str) -> Result<Warmup> {
    let inputs = sample.inputs.iter().map(|(name, input)| {
        let checked = check_input(name, input, &sample.name, model);
        let field = FieldPath::default().named(name.clone()).field("value");
        Ok((name.as_str().into(), checked.map_err(inside(field))?))
    });
    Ok(Warmup {
        index,
        name: sample.name.clone(),
        batch_size: sample.batch_size,
        count: sample.count.max(1),
        inputs: inputs.collect::<Result<_>>()?,
    })
}

fn check_input(name: &str, input: &Input, sample: &str, model: &str) -> Result<WarmupInput> {
    let Some(data_type) = data_type(input.data_type) else {
        let text = format!(
            "input '{name}' of warm-up sample '{sample}' must specify 'data_type' for {model}"
        );
        return refuse("", text, "write its type, for example `data_type: TYPE_FP32`");
    };
    let data = match &input.input_data_type {
        Some(InputDataType::ZeroData(_)) => WarmupData::Zeros,
        Some(InputDataType::RandomData(_)) => WarmupData::Random,
        Some(InputDataType::InputDataFile(file)) => WarmupData::File(file.clone()),
        None => {
            let text = format!(
                "[request id: <id_unknown>] warmup setting expects input '{name}' to have input_data_type set"
            );
            let advice =
                "write `zero_data: true`, `random_data: true` or `input_data_file: \"...\"`";
            return refuse("", text, advice);
        }
    };
    Ok(WarmupInput { data_type, dims: input.dims.as_slice().into(), data })
}

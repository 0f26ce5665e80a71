//! The samples of `model_warmup`.

use std::collections::BTreeMap;

use galatea_proto::inference::{
    ModelWarmup,
    model_warmup::{Input, input::InputDataType},
};

use super::{
    at::{About, At},
    data_type::data_type,
};
use crate::{FieldPath, RawModelConfig, Warmup, WarmupData, WarmupInput};

/// What an input of a warm-up sample lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WarmupError {
    /// No data type.
    #[error("input '{input}' of warm-up sample '{sample}' must specify 'data_type' for {model}")]
    NoDataType {
        /// The input.
        input: String,
        /// The sample.
        sample: String,
        /// The model.
        model: String,
    },
    /// No data.
    #[error(
        "[request id: <id_unknown>] warmup setting expects input '{input}' to have input_data_type set"
    )]
    NoData {
        /// The input.
        input: String,
    },
}

/// Samples with a batch size of 0 are skipped, as Triton does.
pub(super) fn check(raw: &RawModelConfig) -> Result<Vec<Warmup>, At<WarmupError>> {
    let samples = raw.model_warmup.iter().enumerate().filter(|(_, sample)| sample.batch_size > 0);
    let checked = |(index, sample)| {
        let field = FieldPath::from("model_warmup").index(index).field("inputs");
        check_sample(index, sample, &raw.name).map_err(|error: At<_>| error.inside(field))
    };
    samples.map(checked).collect()
}

fn check_sample(
    index: usize,
    sample: &ModelWarmup,
    model: &str,
) -> Result<Warmup, At<WarmupError>> {
    let mut inputs = BTreeMap::new();
    for (name, input) in &sample.inputs {
        let checked = check_input(name, input, &sample.name, model)
            .map_err(|error| error.at(FieldPath::default().named(name.clone()).field("value")))?;
        inputs.insert(name.as_str().into(), checked);
    }
    Ok(Warmup {
        index,
        name: sample.name.clone(),
        batch_size: sample.batch_size,
        count: sample.count.max(1),
        inputs,
    })
}

fn check_input(
    name: &str,
    input: &Input,
    sample: &str,
    model: &str,
) -> Result<WarmupInput, WarmupError> {
    let data_type = data_type(input.data_type).ok_or_else(|| WarmupError::NoDataType {
        input: name.to_owned(),
        sample: sample.to_owned(),
        model: model.to_owned(),
    })?;
    let data = match &input.input_data_type {
        Some(InputDataType::ZeroData(_)) => WarmupData::Zeros,
        Some(InputDataType::RandomData(_)) => WarmupData::Random,
        Some(InputDataType::InputDataFile(file)) => WarmupData::File(file.clone()),
        None => return Err(WarmupError::NoData { input: name.to_owned() }),
    };
    Ok(WarmupInput { data_type, dims: input.dims.as_slice().into(), data })
}

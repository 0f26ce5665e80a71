//! The parameters `pad_batches` and `pad_batches.*`: requests that differ in an open dimension are padded together.

use std::{collections::BTreeMap, sync::Arc};

use galatea_types::{DataType, Shape};

use super::{
    at::{About, At},
    element::element,
};
use crate::{FieldPath, PaddedInput, PaddedOutput, Padding, PaddingMask, TensorSpec};

type Result<T> = std::result::Result<T, At<PaddingError>>;

/// The parameter that switches it on; all others begin with it and a point.
const SWITCH: &str = "pad_batches";
const INPUTS: &str = "inputs";
const VALUE: &str = "value";
const MASK: &str = "mask";
const MASK_OF: &str = "mask_of";
const BUCKETS: &str = "buckets";
const MAX_PADDING: &str = "max_padding";
/// Before the name of an input.
const VALUE_OF: &str = "value.";
/// Before the name of an output.
const LENGTH_OF: &str = "length_of.";
/// Of an output that is as the model gives it.
const NONE: &str = "none";
/// More would only make the configuration long.
const MOST_BUCKETS: usize = 256;
/// On a CPU a run costs as much as few more elements: more padding would cost more than it saves.
const DEFAULT_MAX_PADDING: f64 = 0.2;

/// What is wrong with one of the parameters. Each names it by what is behind `pad_batches.`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaddingError {
    /// Another value of the switch.
    #[error("parameter 'pad_batches' must be 'true' or 'false', got '{0}'")]
    Switch(String),
    /// A name that is none of these parameters.
    #[error("unknown parameter 'pad_batches.{0}'")]
    UnknownParameter(String),
    /// A parameter without the switch.
    #[error("parameter 'pad_batches.{0}' is set, but 'pad_batches' is not 'true'")]
    NotSwitchedOn(String),
    /// Requests are not joined.
    #[error("parameter 'pad_batches' expects 'max_batch_size' above 0")]
    NoBatching,
    /// All inputs have one shape.
    #[error("parameter 'pad_batches' expects an input with a dimension of -1")]
    NothingToPad,
    /// The configuration has no such input.
    #[error(
        "parameter 'pad_batches.{parameter}' names the input '{input}', which the configuration does not list"
    )]
    UnknownInput {
        /// The parameter.
        parameter: String,
        /// The name.
        input: String,
    },
    /// The configuration has no such output.
    #[error(
        "parameter 'pad_batches.length_of.{0}' is about an output that the configuration does not list"
    )]
    UnknownOutput(String),
    /// It has no dimension of -1, or is ragged.
    #[error("parameter 'pad_batches.{parameter}' names the input '{input}', which is not padded")]
    NotPadded {
        /// The parameter.
        parameter: String,
        /// The input.
        input: String,
    },
    /// No element of the input's type.
    #[error(
        "parameter 'pad_batches.{parameter}': '{value}' is no element of {data_type}, the type of input '{input}'"
    )]
    Value {
        /// The parameter.
        parameter: String,
        /// What is written.
        value: String,
        /// The input.
        input: String,
        /// Its type.
        data_type: &'static str,
    },
    /// The buckets are no ascending lengths.
    #[error(
        "parameter 'pad_batches.buckets' must list lengths above 0, each larger than the one before, got '{0}'"
    )]
    Buckets(String),
    /// No share.
    #[error("parameter 'pad_batches.max_padding' must be a number from 0 to 1, got '{0}'")]
    MaxPadding(String),
    /// Requests could not leave it out.
    #[error("parameter 'pad_batches.mask' names the input '{0}', which requests may not leave out")]
    MaskNotOptional(String),
    /// Texts are neither 0 nor 1.
    #[error("parameter 'pad_batches.mask' names the input '{0}', which holds no numbers")]
    MaskOfTexts(String),
    /// Which input the mask is about cannot be told from its dimensions.
    #[error(
        "parameter 'pad_batches.mask': the mask '{mask}' has {open} dimensions of -1, its input '{input}' has {other}"
    )]
    MaskDimensions {
        /// The mask.
        mask: String,
        /// Its open dimensions.
        open: usize,
        /// The input.
        input: String,
        /// Open dimensions of that.
        other: usize,
    },
    /// It is as long as no input.
    #[error("output '{output}' has a dimension of -1 where {}: what of it is padding?", lacking(.input.as_deref()))]
    OutputLength {
        /// The output.
        output: String,
        /// The input that it is said to be as long as.
        input: Option<String>,
    },
}

fn lacking(input: Option<&str>) -> String {
    let none = || "no padded input has one".to_owned();
    input.map_or_else(none, |name| format!("input '{name}' has none"))
}

impl PaddingError {
    /// What to do about it.
    pub(super) fn advice(&self) -> String {
        match self {
            Self::Switch(_) => "write `string_value: \"true\"`".to_owned(),
            Self::UnknownParameter(_) => format!(
                "write one of {INPUTS}, {VALUE}, {VALUE_OF}INPUT, {MASK}, {MASK_OF}, {BUCKETS}, {MAX_PADDING}, \
                 {LENGTH_OF}OUTPUT behind `{SWITCH}.`"
            ),
            Self::NotSwitchedOn(_) => {
                "add `parameters { key: \"pad_batches\" value { string_value: \"true\" } }`, or remove it".to_owned()
            }
            Self::NoBatching => {
                "write `max_batch_size: 8` or another size if the model takes batches, or remove the parameter".to_owned()
            }
            Self::NothingToPad => {
                "write -1 in `dims` for the dimension in which requests differ, or remove the parameter".to_owned()
            }
            Self::UnknownInput { .. } => "write the name of an input of the configuration".to_owned(),
            Self::UnknownOutput(_) => "write the name of an output of the configuration".to_owned(),
            Self::NotPadded { .. } => {
                "name an input that has a dimension of -1, is not ragged, and is in `pad_batches.inputs` where that is set"
                    .to_owned()
            }
            Self::Value { .. } => "write one element, as `0`, `-1` or `0.5`".to_owned(),
            Self::Buckets(_) => "write the lengths with commas, as `16, 32, 64, 128`".to_owned(),
            Self::MaxPadding(_) => format!(
                "write the most that may be padding, as `{DEFAULT_MAX_PADDING}` for a fifth of the longest request"
            ),
            Self::MaskNotOptional(mask) => {
                format!("write `optional: true` for the input '{mask}': the server makes it where a request has none")
            }
            Self::MaskOfTexts(_) => "name an input of numbers or TYPE_BOOL".to_owned(),
            Self::MaskDimensions { .. } => {
                "name the input that the mask is about in `pad_batches.mask_of`".to_owned()
            }
            Self::OutputLength { output, .. } => format!(
                "write the parameter `{SWITCH}.{LENGTH_OF}{output}`: the input whose length it has, or `{NONE}` if \
                 it does not depend on the length"
            ),
        }
    }
}

/// The settings as they are written, without `pad_batches.`.
struct Settings<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Settings<'a> {
    fn get(&self, parameter: &str) -> Option<&'a str> {
        self.0.get(parameter).map(|value| value.trim())
    }

    /// What a parameter about one tensor says, by the name of that.
    fn each(&self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let about = self
            .0
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.trim())));
        about.collect::<Vec<_>>().into_iter()
    }
}

fn field(parameter: &str) -> FieldPath {
    let key = match parameter {
        "" => SWITCH.to_owned(),
        other => format!("{SWITCH}.{other}"),
    };
    FieldPath::from("parameters").named(key)
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// `None` where it is not switched on.
pub(super) fn check(
    parameters: &BTreeMap<String, String>,
    has_batching: bool,
    inputs: &[TensorSpec],
    outputs: &[TensorSpec],
) -> Result<Option<Padding>> {
    let Some(settings) = settings(parameters)? else { return Ok(None) };
    if !has_batching {
        return Err(PaddingError::NoBatching.at(field("")));
    }
    let mask = settings.get(MASK).map(|name| find(MASK, name, inputs)).transpose()?;
    let padded = padded_inputs(&settings, inputs, mask)?;
    let mask = mask.map(|mask| check_mask(&settings, mask, &padded)).transpose()?;
    let buckets = buckets(&settings)?;
    let max_padding = max_padding(&settings, &buckets)?;
    let outputs = padded_outputs(&settings, outputs, &padded)?;
    let inputs = padded.into_iter().map(|spec| padded_input(&settings, spec));
    let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
    // What a request brings as its mask is padded with zeros, as what the server makes.
    inputs.extend(
        mask.as_ref()
            .map(|mask| PaddedInput { name: mask.name.clone(), value: vec![0; mask.one.len()] }),
    );
    Ok(Some(Padding { inputs, mask, buckets, max_padding, outputs }))
}

fn settings(parameters: &BTreeMap<String, String>) -> Result<Option<Settings<'_>>> {
    let own = parameters.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(SWITCH)?.strip_prefix('.')?;
        Some((name, value.as_str()))
    });
    let settings = Settings(own.collect());
    if let Some(name) = settings.0.keys().find(|name| !is_known(name)) {
        return Err(PaddingError::UnknownParameter((*name).to_owned()).at(field(name)));
    }
    match (parameters.get(SWITCH).map(|value| value.trim()), settings.0.keys().next()) {
        (Some("true"), _) => Ok(Some(settings)),
        (Some("false"), _) | (None, None) => Ok(None),
        (Some(other), _) => Err(PaddingError::Switch(other.to_owned()).at(field(""))),
        (None, Some(name)) => Err(PaddingError::NotSwitchedOn((*name).to_owned()).at(field(name))),
    }
}

fn is_known(name: &str) -> bool {
    [INPUTS, VALUE, MASK, MASK_OF, BUCKETS, MAX_PADDING].contains(&name)
        || name.starts_with(VALUE_OF)
        || name.starts_with(LENGTH_OF)
}

fn find<'s>(parameter: &str, name: &str, inputs: &'s [TensorSpec]) -> Result<&'s TensorSpec> {
    inputs.iter().find(|spec| &*spec.name == name).ok_or_else(|| {
        PaddingError::UnknownInput { parameter: parameter.to_owned(), input: name.to_owned() }
            .at(field(parameter))
    })
}

fn find_padded<'s>(
    parameter: &str,
    name: &str,
    padded: &[&'s TensorSpec],
) -> Result<&'s TensorSpec> {
    padded.iter().copied().find(|spec| &*spec.name == name).ok_or_else(|| {
        PaddingError::NotPadded { parameter: parameter.to_owned(), input: name.to_owned() }
            .at(field(parameter))
    })
}

fn can_be_padded(spec: &TensorSpec) -> bool {
    spec.dims.is_variable() && !spec.allows_ragged_batch
}

/// All but the mask.
fn padded_inputs<'s>(
    settings: &Settings<'_>,
    inputs: &'s [TensorSpec],
    mask: Option<&TensorSpec>,
) -> Result<Vec<&'s TensorSpec>> {
    let is_mask = |spec: &TensorSpec| mask.is_some_and(|mask| mask.name == spec.name);
    let open: Vec<&TensorSpec> =
        inputs.iter().filter(|spec| can_be_padded(spec) && !is_mask(spec)).collect();
    let padded = match settings.get(INPUTS) {
        None => open,
        Some(names) => {
            let named = list(names).filter(|name| mask.is_none_or(|mask| &*mask.name != *name));
            let named = named.map(|name| {
                find(INPUTS, name, inputs).and_then(|spec| find_padded(INPUTS, &spec.name, &open))
            });
            named.collect::<Result<Vec<_>>>()?
        }
    };
    match padded.is_empty() {
        true => Err(PaddingError::NothingToPad.at(field(""))),
        false => Ok(padded),
    }
}

fn padded_input(settings: &Settings<'_>, spec: &TensorSpec) -> Result<PaddedInput> {
    let own = format!("{VALUE_OF}{}", spec.name);
    let (parameter, text) = match (settings.get(&own), settings.get(VALUE)) {
        (Some(text), _) => (own.as_str(), text),
        (None, Some(text)) => (VALUE, text),
        (None, None) if spec.data_type == DataType::Bytes => (VALUE, ""),
        (None, None) => (VALUE, "0"),
    };
    let value = element(spec.data_type, text).ok_or_else(|| {
        PaddingError::Value {
            parameter: parameter.to_owned(),
            value: text.to_owned(),
            input: spec.name.to_string(),
            data_type: spec.data_type.config_name(),
        }
        .at(field(parameter))
    })?;
    Ok(PaddedInput { name: spec.name.clone(), value })
}

fn check_mask(
    settings: &Settings<'_>,
    mask: &TensorSpec,
    padded: &[&TensorSpec],
) -> Result<PaddingMask> {
    let name = || mask.name.to_string();
    if !mask.is_optional {
        return Err(PaddingError::MaskNotOptional(name()).at(field(MASK)));
    }
    let one = element(mask.data_type, "1").filter(|_| mask.data_type != DataType::Bytes);
    let one = one.ok_or_else(|| PaddingError::MaskOfTexts(name()).at(field(MASK)))?;
    let open = |spec: &TensorSpec| spec.dims.iter().filter(|dim| **dim < 0).count();
    let source = match settings.get(MASK_OF) {
        Some(source) => find_padded(MASK_OF, source, padded)?,
        None => padded
            .iter()
            .copied()
            .find(|spec| open(spec) == open(mask))
            .or(padded.first().copied())
            .ok_or_else(|| PaddingError::NothingToPad.at(field("")))?,
    };
    if open(source) != open(mask) {
        return Err(PaddingError::MaskDimensions {
            mask: name(),
            open: open(mask),
            input: source.name.to_string(),
            other: open(source),
        }
        .at(field(MASK)));
    }
    Ok(PaddingMask { name: mask.name.clone(), one, source: source.name.clone() })
}

fn buckets(settings: &Settings<'_>) -> Result<Vec<i64>> {
    let Some(text) = settings.get(BUCKETS) else { return Ok(Vec::new()) };
    let lengths: Option<Vec<i64>> = list(text).map(|item| item.parse().ok()).collect();
    let lengths = lengths.filter(|lengths| {
        let is_ascending = lengths.windows(2).all(|pair| pair.first() < pair.last());
        !lengths.is_empty()
            && lengths.len() <= MOST_BUCKETS
            && lengths.first().is_some_and(|&first| first > 0)
            && is_ascending
    });
    lengths.ok_or_else(|| PaddingError::Buckets(text.to_owned()).at(field(BUCKETS)))
}

/// Buckets say by themselves how much is padded.
fn max_padding(settings: &Settings<'_>, buckets: &[i64]) -> Result<Option<f64>> {
    let Some(text) = settings.get(MAX_PADDING) else {
        return Ok(buckets.is_empty().then_some(DEFAULT_MAX_PADDING));
    };
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    let share =
        share.ok_or_else(|| PaddingError::MaxPadding(text.to_owned()).at(field(MAX_PADDING)))?;
    Ok(Some(share))
}

fn padded_outputs(
    settings: &Settings<'_>,
    outputs: &[TensorSpec],
    padded: &[&TensorSpec],
) -> Result<Vec<PaddedOutput>> {
    let known = |name: &str| outputs.iter().any(|output| &*output.name == name);
    if let Some((name, _)) = settings.each(LENGTH_OF).find(|(name, _)| !known(name)) {
        let parameter = format!("{LENGTH_OF}{name}");
        return Err(PaddingError::UnknownOutput(name.to_owned()).at(field(&parameter)));
    }
    let check = |output| padded_output(settings, output, padded).transpose();
    outputs.iter().filter_map(check).collect()
}

fn padded_output(
    settings: &Settings<'_>,
    output: &TensorSpec,
    padded: &[&TensorSpec],
) -> Result<Option<PaddedOutput>> {
    let parameter = format!("{LENGTH_OF}{}", output.name);
    let source: Option<Arc<str>> = match settings.get(&parameter) {
        Some(NONE) => return Ok(None),
        Some(source) => {
            let source = find_padded(&parameter, source, padded)?;
            shares_open_dimension(output, &source.dims).then(|| source.name.clone())
        }
        None if !output.dims.is_variable() => return Ok(None),
        None => {
            let mut candidates = padded.iter();
            let source = candidates.find(|spec| shares_open_dimension(output, &spec.dims));
            source.map(|spec| spec.name.clone())
        }
    };
    let name = output.name.clone();
    let input = settings.get(&parameter).map(str::to_owned);
    let unknown = || PaddingError::OutputLength { output: name.to_string(), input }.at(field(""));
    let source = source.ok_or_else(unknown)?;
    Ok(Some(PaddedOutput { name: output.name.clone(), source }))
}

fn shares_open_dimension(output: &TensorSpec, input: &Shape) -> bool {
    output.dims.iter().zip(input.iter()).any(|(&a, &b)| a < 0 && b < 0)
}

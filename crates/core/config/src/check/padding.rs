//! The parameters `pad_batches` and `pad_batches.*`: requests that differ in an open dimension are padded together.

use std::collections::BTreeMap;

use galatea_types::{DataType, Shape};

use super::{
    element::element,
    mistake::{Result, refuse},
};
use crate::{
    FieldPath, PaddedInput, PaddedOutput, Padding, PaddingMask, RawModelConfig, TensorSpec,
};

/// The parameter that switches padding on; the others begin with it and a point.
const SWITCH: &str = "pad_batches";
const INPUTS: &str = "inputs";
const VALUE: &str = "value";
const MASK: &str = "mask";
const MASK_OF: &str = "mask_of";
const BUCKETS: &str = "buckets";
const MAX_PADDING: &str = "max_padding";
/// Prefix before the name of an input.
const VALUE_OF: &str = "value.";
/// Prefix before the name of an output.
const LENGTH_OF: &str = "length_of.";
/// Value for an output that stays as the model returns it.
const NONE: &str = "none";
/// Most buckets: more would only make the configuration long.
const MOST_BUCKETS: usize = 256;
/// Default share of padding. On a CPU a run costs as much as a few more elements, so more padding costs more than it saves.
const DEFAULT_MAX_PADDING: f64 = 0.2;

/// The settings of a model without their prefix `pad_batches.`.
struct Settings<'a> {
    model: &'a str,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Settings<'a> {
    fn get(&self, parameter: &str) -> Option<&'a str> {
        self.values.get(parameter).map(|value| value.trim())
    }

    /// Refuses a parameter by the part behind `pad_batches.`; empty means the switch.
    fn refuse<T>(&self, parameter: &str, problem: &str, advice: &str) -> Result<T> {
        let key = match parameter {
            "" => SWITCH.to_owned(),
            other => format!("{SWITCH}.{other}"),
        };
        let text = format!("{problem} for {}", self.model);
        refuse(FieldPath::from("parameters").named(key), text, advice)
    }

    /// Refuses the value of a parameter.
    fn refuse_value<T>(&self, parameter: &str, problem: &str, advice: &str) -> Result<T> {
        let problem = format!("parameter '{SWITCH}.{parameter}'{problem}");
        self.refuse(parameter, &problem, advice)
    }

    fn nothing_to_pad<T>(&self) -> Result<T> {
        let problem = "parameter 'pad_batches' expects an input with a dimension of -1";
        let advice = "write -1 in `dims` for the dimension in which requests differ, or remove the parameter";
        self.refuse("", problem, advice)
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Returns `None` when padding is not switched on.
pub(super) fn check(
    raw: &RawModelConfig,
    parameters: &BTreeMap<String, String>,
    inputs: &[TensorSpec],
    outputs: &[TensorSpec],
) -> Result<Option<Padding>> {
    let Some(settings) = settings(&raw.name, parameters)? else { return Ok(None) };
    if raw.max_batch_size <= 0 {
        let problem = "parameter 'pad_batches' expects 'max_batch_size' above 0";
        let advice = "write `max_batch_size: 8` or another size if the model takes batches, or remove the parameter";
        return settings.refuse("", problem, advice);
    }
    let mask = settings.get(MASK).map(|name| find(&settings, MASK, name, inputs)).transpose()?;
    let padded = padded_inputs(&settings, inputs, mask)?;
    let mask = mask.map(|mask| check_mask(&settings, mask, &padded)).transpose()?;
    let buckets = buckets(&settings)?;
    let max_padding = max_padding(&settings, &buckets)?;
    let outputs = padded_outputs(&settings, outputs, &padded)?;
    let inputs = padded.into_iter().map(|spec| padded_input(&settings, spec));
    let mut inputs = inputs.collect::<Result<Vec<_>>>()?;
    // A mask from a request is padded with zeros, as the server's own mask is.
    inputs.extend(
        mask.as_ref()
            .map(|mask| PaddedInput { name: mask.name.clone(), value: vec![0; mask.one.len()] }),
    );
    Ok(Some(Padding { inputs, mask, buckets, max_padding, outputs }))
}

fn settings<'a>(
    model: &'a str,
    parameters: &'a BTreeMap<String, String>,
) -> Result<Option<Settings<'a>>> {
    let own = parameters.iter().filter_map(|(key, value)| {
        let name = key.strip_prefix(SWITCH)?.strip_prefix('.')?;
        Some((name, value.as_str()))
    });
    let settings = Settings { model, values: own.collect() };
    if let Some(name) = settings.values.keys().find(|name| !is_known(name)) {
        let advice = format!(
            "write one of {INPUTS}, {VALUE}, {VALUE_OF}INPUT, {MASK}, {MASK_OF}, {BUCKETS}, {MAX_PADDING}, \
             {LENGTH_OF}OUTPUT behind `{SWITCH}.`"
        );
        return settings.refuse(name, &format!("unknown parameter 'pad_batches.{name}'"), &advice);
    }
    match (parameters.get(SWITCH).map(|value| value.trim()), settings.values.keys().next()) {
        (Some("true"), _) => Ok(Some(settings)),
        (Some("false"), _) | (None, None) => Ok(None),
        (Some(other), _) => {
            let problem =
                format!("parameter 'pad_batches' must be 'true' or 'false', got '{other}'");
            settings.refuse("", &problem, "write `string_value: \"true\"`")
        }
        (None, Some(name)) => {
            let advice = "add `parameters { key: \"pad_batches\" value { string_value: \"true\" } }`, or remove it";
            settings.refuse_value(name, " is set, but 'pad_batches' is not 'true'", advice)
        }
    }
}

fn is_known(name: &str) -> bool {
    [INPUTS, VALUE, MASK, MASK_OF, BUCKETS, MAX_PADDING].contains(&name)
        || name.starts_with(VALUE_OF)
        || name.starts_with(LENGTH_OF)
}

fn find<'s>(
    settings: &Settings<'_>,
    parameter: &str,
    name: &str,
    inputs: &'s [TensorSpec],
) -> Result<&'s TensorSpec> {
    inputs.iter().find(|spec| &*spec.name == name).map_or_else(
        || {
            let problem =
                format!(" names the input '{name}', which the configuration does not list");
            let advice = "write the name of an input of the configuration";
            settings.refuse_value(parameter, &problem, advice)
        },
        Ok,
    )
}

fn find_padded<'s>(
    settings: &Settings<'_>,
    parameter: &str,
    name: &str,
    padded: &[&'s TensorSpec],
) -> Result<&'s TensorSpec> {
    padded.iter().copied().find(|spec| &*spec.name == name).map_or_else(
        || {
            let problem = format!(" names the input '{name}', which is not padded");
            let advice =
                "name an input that has a dimension of -1, is not ragged, and is in `pad_batches.inputs` where that is set";
            settings.refuse_value(parameter, &problem, advice)
        },
        Ok,
    )
}

fn can_be_padded(spec: &TensorSpec) -> bool {
    spec.dims.is_variable() && !spec.allows_ragged_batch
}

/// Returns the padded inputs, without the mask.
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
                find(settings, INPUTS, name, inputs)?;
                find_padded(settings, INPUTS, name, &open)
            });
            named.collect::<Result<Vec<_>>>()?
        }
    };
    match padded.is_empty() {
        true => settings.nothing_to_pad(),
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
    let Some(value) = element(spec.data_type, text) else {
        let problem = format!(
            ": '{text}' is not an element of {}, the type of input '{}'",
            spec.data_type.config_name(),
            spec.name
        );
        return settings.refuse_value(
            parameter,
            &problem,
            "write one element, as `0`, `-1` or `0.5`",
        );
    };
    Ok(PaddedInput { name: spec.name.clone(), value })
}

fn check_mask(
    settings: &Settings<'_>,
    mask: &TensorSpec,
    padded: &[&TensorSpec],
) -> Result<PaddingMask> {
    let name = &mask.name;
    if !mask.is_optional {
        let problem = format!(" names the input '{name}', which requests may not leave out");
        let advice = format!(
            "write `optional: true` for the input '{name}': the server makes it where a request has none"
        );
        return settings.refuse_value(MASK, &problem, &advice);
    }
    let one = element(mask.data_type, "1").filter(|_| mask.data_type != DataType::Bytes);
    let Some(one) = one else {
        let problem = format!(" names the input '{name}', which holds no numbers");
        return settings.refuse_value(MASK, &problem, "name an input of numbers or TYPE_BOOL");
    };
    let open = |spec: &TensorSpec| spec.dims.iter().filter(|dim| **dim < 0).count();
    let mut like_mask = padded.iter().copied().filter(|spec| open(spec) == open(mask));
    let source = match (settings.get(MASK_OF), like_mask.next().or(padded.first().copied())) {
        (Some(source), _) => find_padded(settings, MASK_OF, source, padded)?,
        (None, Some(source)) => source,
        (None, None) => return settings.nothing_to_pad(),
    };
    if open(source) != open(mask) {
        let problem = format!(
            ": the mask '{name}' has {} dimensions of -1, its input '{}' has {}",
            open(mask),
            source.name,
            open(source)
        );
        let advice = "name the input that the mask is about in `pad_batches.mask_of`";
        return settings.refuse_value(MASK, &problem, advice);
    }
    Ok(PaddingMask { name: name.clone(), one, source: source.name.clone() })
}

fn buckets(settings: &Settings<'_>) -> Result<Vec<i64>> {
    let Some(text) = settings.get(BUCKETS) else { return Ok(Vec::new()) };
    let lengths: Option<Vec<i64>> = list(text).map(|item| item.parse().ok()).collect();
    let is_fit = |lengths: &Vec<i64>| {
        let is_ascending = lengths.windows(2).all(|pair| pair.first() < pair.last());
        lengths.len() <= MOST_BUCKETS && lengths.first().is_some_and(|&n| n > 0) && is_ascending
    };
    lengths.filter(is_fit).map_or_else(
        || {
            let problem = format!(
                " must list lengths above 0, each larger than the one before, got '{text}'"
            );
            let advice = "write the lengths with commas, as `16, 32, 64, 128`";
            settings.refuse_value(BUCKETS, &problem, advice)
        },
        Ok,
    )
}

/// Returns the share of padding. Buckets limit the padding by themselves.
fn max_padding(settings: &Settings<'_>, buckets: &[i64]) -> Result<Option<f64>> {
    let Some(text) = settings.get(MAX_PADDING) else {
        return Ok(buckets.is_empty().then_some(DEFAULT_MAX_PADDING));
    };
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    if share.is_none() {
        let problem = format!(" must be a number from 0 to 1, got '{text}'");
        let advice = format!(
            "write the most that may be padding, as `{DEFAULT_MAX_PADDING}` for a fifth of the longest request"
        );
        return settings.refuse_value(MAX_PADDING, &problem, &advice);
    }
    Ok(share)
}

fn padded_outputs(
    settings: &Settings<'_>,
    outputs: &[TensorSpec],
    padded: &[&TensorSpec],
) -> Result<Vec<PaddedOutput>> {
    let is_known = |name: &str| outputs.iter().any(|output| &*output.name == name);
    let is_unknown = |key: &&&str| key.strip_prefix(LENGTH_OF).is_some_and(|name| !is_known(name));
    if let Some(parameter) = settings.values.keys().find(is_unknown) {
        let problem = " is about an output that the configuration does not list";
        let advice = "write the name of an output of the configuration";
        return settings.refuse_value(parameter, problem, advice);
    }
    let check = |output| padded_output(settings, output, padded).transpose();
    outputs.iter().filter_map(check).collect()
}

fn padded_output(
    settings: &Settings<'_>,
    output: &TensorSpec,
    padded: &[&TensorSpec],
) -> Result<Option<PaddedOutput>> {
    let name = &output.name;
    let parameter = format!("{LENGTH_OF}{name}");
    let shares_dimension = |spec: &&TensorSpec| shares_open_dimension(output, &spec.dims);
    let given = settings.get(&parameter);
    let source = match given {
        Some(NONE) => return Ok(None),
        Some(source) => {
            Some(find_padded(settings, &parameter, source, padded)?).filter(shares_dimension)
        }
        None if !output.dims.is_variable() => return Ok(None),
        None => padded.iter().copied().find(shares_dimension),
    };
    let Some(source) = source else {
        let lacking = match given {
            Some(input) => format!("input '{input}' has none"),
            None => "no padded input has one".to_owned(),
        };
        let problem = format!(
            "output '{name}' has a dimension of -1 where {lacking}: what of it is padding?"
        );
        let advice = format!(
            "write the parameter `{SWITCH}.{LENGTH_OF}{name}`: the input whose length it has, or `{NONE}` if it does not \
             depend on the length"
        );
        return settings.refuse("", &problem, &advice);
    };
    Ok(Some(PaddedOutput { name: name.clone(), source: source.name.clone() }))
}

fn shares_open_dimension(output: &TensorSpec, input: &Shape) -> bool {
    output.dims.iter().zip(input.iter()).any(|(&a, &b)| a < 0 && b < 0)
}

//! Which input of a configuration is which argument of `forward`, and which output which value it returns.
//! Rules and texts are Triton's.

mod error;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::DataType;

use self::error::NamingError;
use crate::torch::{Argument, Form, Takes};

/// Where each input of the configuration goes.
#[derive(Debug, PartialEq)]
pub(crate) struct Inputs {
    pub form: Form,
    /// Argument of each input, in the order of the configuration; of no meaning for a dictionary.
    pub positions: Vec<usize>,
}

impl Inputs {
    pub fn assign(config: &ModelConfig, arguments: &[Argument]) -> Result<Self, NamingError> {
        if config.execution_inputs().is_empty() {
            return Err(NamingError::NoInputs);
        }
        if let [only] = arguments
            && only.takes == Takes::Dictionary
        {
            let positions = (0..config.execution_inputs().len()).collect();
            return Ok(Self { form: Form::Dictionary, positions });
        }
        check_arguments(config, arguments)?;
        let positions = positions(config, arguments)?;
        check_kinds(config, arguments, &positions)?;
        Ok(Self { form: Form::Positional, positions })
    }
}

fn check_arguments(config: &ModelConfig, arguments: &[Argument]) -> Result<(), NamingError> {
    let dictionaries = arguments.iter().filter(|a| a.takes == Takes::Dictionary).count();
    if dictionaries > 1 {
        return Err(NamingError::SeveralDictionaries);
    }
    let configured = config.execution_inputs().len();
    let is_strange = |a: &&Argument| matches!(a.takes, Takes::Dictionary | Takes::Other);
    // What a model does not have to be given is its own business.
    let must_fit = arguments.iter().enumerate().filter(|(i, a)| *i < configured || !a.has_default);
    if let Some(strange) = must_fit.map(|(_, a)| a).find(is_strange) {
        return Err(NamingError::UnsupportedType { type_name: strange.type_name.clone() });
    }
    let needed = arguments.iter().take_while(|a| !a.has_default).count();
    if (needed..=arguments.len()).contains(&configured) {
        return Ok(());
    }
    let (model, provided) = (config.name().to_string(), arguments.len());
    Err(NamingError::InputCount { model, configured, provided })
}

fn positions(config: &ModelConfig, arguments: &[Argument]) -> Result<Vec<usize>, NamingError> {
    let named = |spec: &TensorSpec| arguments.iter().position(|a| a.name == *spec.name);
    let positions: Option<Vec<usize>> = config.execution_inputs().iter().map(named).collect();
    let positions = match positions.or_else(|| indices(config.execution_inputs())) {
        Some(positions) => positions,
        None => {
            if let Some(spec) =
                config.execution_inputs().iter().find(|s| s.name.contains(SEPARATOR))
            {
                log::warn!(
                    "input '{}' or previous input(s) are neither an input argument to the model '{}' nor \
                     do they follow the <name>__<index> naming convention. Falling back to enforcing \
                     strict ordering from model configuration.",
                    spec.name,
                    config.name()
                );
            }
            (0..config.execution_inputs().len()).collect()
        }
    };
    check_positions(config, &positions)?;
    Ok(positions)
}

/// Each argument once, none left out between them.
fn check_positions(config: &ModelConfig, positions: &[usize]) -> Result<(), NamingError> {
    let mut taken = BTreeMap::new();
    for (spec, &position) in config.execution_inputs().iter().zip(positions) {
        if position >= positions.len() {
            return Err(NamingError::PositionOutOfRange {
                model: config.name().to_string(),
                input: spec.name.to_string(),
                position,
                count: positions.len(),
            });
        }
        if let Some(other) = taken.insert(position, &spec.name) {
            return Err(NamingError::PositionTwice {
                model: config.name().to_string(),
                first: other.to_string(),
                second: spec.name.to_string(),
                position,
            });
        }
    }
    Ok(())
}

/// Texts go to lists of texts and tensors to tensors.
fn check_kinds(
    config: &ModelConfig,
    arguments: &[Argument],
    positions: &[usize],
) -> Result<(), NamingError> {
    for (spec, &position) in config.execution_inputs().iter().zip(positions) {
        let Some(argument) = arguments.get(position) else { continue };
        let wanted = if spec.data_type == DataType::Bytes { Takes::Strings } else { Takes::Tensor };
        if argument.takes != wanted {
            return Err(NamingError::OtherKind {
                model: config.name().to_string(),
                input: spec.name.to_string(),
                data_type: spec.data_type.config_name(),
                argument: argument.name.clone(),
                type_name: argument.type_name.clone(),
            });
        }
    }
    Ok(())
}

/// Position of each output of the configuration among what `forward` returns. In a dictionary, outputs are
/// found by their names instead.
pub(crate) fn output_positions(config: &ModelConfig) -> Result<Vec<usize>, NamingError> {
    if config.model_outputs().is_empty() {
        return Err(NamingError::NoOutputs);
    }
    if let Some(positions) = indices(config.model_outputs()) {
        return Ok(positions);
    }
    if let Some(spec) = config.model_outputs().iter().find(|spec| spec.name.contains(SEPARATOR)) {
        log::warn!(
            "output '{}' or previous output(s) of the model '{}' do not follow the <name>__<index> naming \
             convention. Falling back to enforcing strict ordering from model configuration.",
            spec.name,
            config.name()
        );
    }
    Ok((0..config.model_outputs().len()).collect())
}

const SEPARATOR: &str = "__";

/// The index of each name, if all are of the form `<name>__<index>`.
fn indices(specs: &[TensorSpec]) -> Option<Vec<usize>> {
    let index = |spec: &TensorSpec| {
        let (_, index) = spec.name.split_once(SEPARATOR)?;
        index.bytes().all(|b| b.is_ascii_digit()).then(|| index.parse().ok())?
    };
    specs.iter().map(index).collect()
}

//! Matches inputs of a configuration with arguments of `forward`, and outputs with the values that it returns.
//! Rules and texts are Triton's.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use galatea_backend::misconfigured;
use galatea_config::{FieldPath, ModelConfig, TensorSpec};
use galatea_types::{Code, DataType, Error, Result};

use crate::torch::{Argument, ArgumentKind, ForwardForm};

/// The argument of `forward` for each input of the configuration.
#[derive(Debug, PartialEq)]
pub(crate) struct Inputs {
    pub form: ForwardForm,
    /// Argument of each input, in the order of the configuration; unused for a dictionary.
    pub positions: Vec<usize>,
}

impl Inputs {
    pub fn assign(config: &ModelConfig, arguments: &[Argument]) -> Result<Self> {
        if config.execution_inputs().is_empty() {
            return Err(none("input", "INPUT"));
        }
        if let [only] = arguments
            && only.takes == ArgumentKind::Dictionary
        {
            let positions = (0..config.execution_inputs().len()).collect();
            return Ok(Self { form: ForwardForm::Dictionary, positions });
        }
        check_arguments(config, arguments)?;
        let positions = positions(config, arguments)?;
        check_kinds(config, arguments, &positions)?;
        Ok(Self { form: ForwardForm::Positional, positions })
    }
}

fn check_arguments(config: &ModelConfig, arguments: &[Argument]) -> Result<()> {
    let dictionaries = arguments.iter().filter(|a| a.takes == ArgumentKind::Dictionary).count();
    if dictionaries > 1 {
        return Err(unsupported(
            "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is supported."
                .to_owned(),
        ));
    }
    let configured = config.execution_inputs().len();
    let is_strange =
        |a: &&Argument| matches!(a.takes, ArgumentKind::Dictionary | ArgumentKind::Other);
    let must_fit = arguments.iter().enumerate().filter(|(i, a)| *i < configured || !a.has_default);
    if let Some(strange) = must_fit.map(|(_, a)| a).find(is_strange) {
        return Err(unsupported(format!(
            "An input of type '{}' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of \
             type Tensor are supported.",
            strange.type_name
        )));
    }
    let needed = arguments.iter().take_while(|a| !a.has_default).count();
    if (needed..=arguments.len()).contains(&configured) {
        return Ok(());
    }
    let (model, provided) = (config.name(), arguments.len());
    let text = format!(
        "unable to load model '{model}', configuration expects {configured} inputs, model provides {provided}"
    );
    let advice = "list one input for each argument of the model's forward()";
    Err(misconfigured(Code::InvalidArg, text, "input", advice))
}

/// Returns the error of a configuration that lists no tensors of a kind (`what`).
fn none(what: &str, prefix: &str) -> Error {
    let text =
        format!("model configuration must contain at least one {what}, none were specified.");
    let advice = format!(
        "a TorchScript file does not say its {what}s: write `{what} [ {{ name: \"{prefix}__0\" data_type: TYPE_FP32 dims: [ \
         ... ] }} ]`"
    );
    misconfigured(Code::Internal, text, FieldPath::default(), advice)
}

/// Returns the error of a model with arguments that no request can give it.
fn unsupported(text: String) -> Error {
    let advice =
        "let the model's forward() take tensors, or one dictionary of tensors, and export it again";
    misconfigured(Code::Internal, text, "input", advice)
}

fn at(input: &TensorSpec, field: &'static str) -> FieldPath {
    FieldPath::from("input").named(&*input.name).field(field)
}

fn positions(config: &ModelConfig, arguments: &[Argument]) -> Result<Vec<usize>> {
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

/// Checks that each argument is used once, and none is left out between them.
fn check_positions(config: &ModelConfig, positions: &[usize]) -> Result<()> {
    let mut taken = BTreeMap::new();
    for (spec, &position) in config.execution_inputs().iter().zip(positions) {
        if position >= positions.len() {
            let (model, count) = (config.name(), positions.len());
            let text = format!(
                "unable to load model '{model}', input '{}' refers to argument {position} of forward(), but the \
                 configuration has {count} inputs: their indices must be 0 to {}",
                spec.name,
                count - 1
            );
            let advice = "number the inputs from 0: `INPUT__0`, `INPUT__1`";
            return Err(misconfigured(Code::InvalidArg, text, at(spec, "name"), advice));
        }
        if let Some(other) = taken.insert(position, &spec.name) {
            let (model, second) = (config.name(), &spec.name);
            let text = format!(
                "unable to load model '{model}', inputs '{other}' and '{second}' both refer to argument {position} of \
                 forward()"
            );
            let advice = "give each input the number of another argument: `INPUT__0`, `INPUT__1`";
            return Err(misconfigured(Code::InvalidArg, text, at(spec, "name"), advice));
        }
    }
    Ok(())
}

/// Checks that texts go to lists of texts and tensors to tensors.
fn check_kinds(config: &ModelConfig, arguments: &[Argument], positions: &[usize]) -> Result<()> {
    for (spec, &position) in config.execution_inputs().iter().zip(positions) {
        let Some(argument) = arguments.get(position) else { continue };
        let wanted = if spec.data_type == DataType::Bytes {
            ArgumentKind::Strings
        } else {
            ArgumentKind::Tensor
        };
        if argument.takes != wanted {
            let (model, input) = (config.name(), &spec.name);
            let text = format!(
                "unable to load model '{model}', input '{input}' is {}, but argument '{}' of forward() takes {}",
                spec.data_type.config_name(),
                argument.name,
                argument.type_name
            );
            let advice = "write the type that forward() takes: TYPE_STRING for a list of texts, a type of numbers for a \
                          tensor";
            return Err(misconfigured(Code::InvalidArg, text, at(spec, "data_type"), advice));
        }
    }
    Ok(())
}

/// Returns the position of each output of the configuration among the values that `forward` returns. In a dictionary,
/// outputs are found by their names instead.
pub(crate) fn output_positions(config: &ModelConfig) -> Result<Vec<usize>> {
    if config.model_outputs().is_empty() {
        return Err(none("output", "OUTPUT"));
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

/// Returns the index of each name, if all have the form `<name>__<index>`.
fn indices(specs: &[TensorSpec]) -> Option<Vec<usize>> {
    let index = |spec: &TensorSpec| {
        let (_, index) = spec.name.split_once(SEPARATOR)?;
        index.bytes().all(|b| b.is_ascii_digit()).then(|| index.parse().ok())?
    };
    specs.iter().map(index).collect()
}

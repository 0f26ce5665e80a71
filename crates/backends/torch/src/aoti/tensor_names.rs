//! Matches the inputs and outputs of a configuration with those of a package.

use galatea_backend::misconfigured;
use galatea_config::{FieldPath, ModelConfig, TensorSpec};
use galatea_types::{Code, Result};

/// The inputs or the outputs of a package: their number, and their names if the call spec has them.
pub(super) struct TensorNames<'a> {
    /// `input` or `output`.
    pub what: &'static str,
    /// Beginning of a name before the position: `INPUT__` or `OUTPUT__`.
    pub prefix: &'static str,
    pub count: usize,
    pub names: &'a [String],
}

impl TensorNames<'_> {
    /// Returns the position of each of `specs`, no position twice.
    pub fn positions(&self, config: &ModelConfig, specs: &[TensorSpec]) -> Result<Vec<usize>> {
        let (what, model) = (self.what, config.name());
        if specs.is_empty() {
            let text = format!(
                "model configuration must contain at least one {what}, none were specified: model '{model}' has {}, \
                 and its package does not tell their types and dimensions",
                self.known()
            );
            let advice = "list them with their names, types and dimensions";
            return Err(misconfigured(Code::Internal, text, FieldPath::default(), advice));
        }
        let mut positions = Vec::with_capacity(specs.len());
        for TensorSpec { name, .. } in specs {
            let mistake = |text: String, advice| {
                let text = format!("unable to load model '{model}', {what} '{name}' is {text}");
                let field = FieldPath::from(what).named(&**name).field("name");
                misconfigured(Code::InvalidArg, text, field, advice)
            };
            let position = self.position(name).ok_or_else(|| {
                let text = format!("not in the package, which has {}", self.known());
                mistake(text, "write one of the names that the package has")
            })?;
            if positions.contains(&position) {
                let text = "another name of a listed one".to_owned();
                return Err(mistake(text, "list each tensor of the package once"));
            }
            positions.push(position);
        }
        Ok(positions)
    }

    fn position(&self, name: &str) -> Option<usize> {
        let by_name = self.names.iter().position(|known| known == name);
        let by_index = || name.strip_prefix(self.prefix)?.parse().ok().filter(|&i| i < self.count);
        by_name.or_else(by_index)
    }

    /// Lists the names, e.g. `ARGS[0] or INPUT__0, KWARGS[mask] or INPUT__1`.
    fn known(&self) -> String {
        let name = |index| match self.names.get(index) {
            Some(name) => format!("{name} or {}{index}", self.prefix),
            None => format!("{}{index}", self.prefix),
        };
        (0..self.count).map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Checks that all inputs are configured: compiled code needs all of them.
pub(super) fn check_complete(config: &ModelConfig, side: &TensorNames<'_>) -> Result<()> {
    let model = config.name();
    if let Some(spec) = config.execution_inputs().iter().find(|spec| spec.is_optional) {
        let name = &*spec.name;
        let text = format!(
            "unable to load model '{model}', input '{name}' is optional, but a package takes all its inputs"
        );
        let field = FieldPath::from("input").named(name).field("optional");
        return Err(misconfigured(Code::InvalidArg, text, field, "remove `optional`"));
    }
    let (configured, provided) = (config.execution_inputs().len(), side.count);
    if configured == provided {
        return Ok(());
    }
    let text = format!(
        "unable to load model '{model}', configuration expects {configured} inputs, model provides {provided}: {}",
        side.known()
    );
    let advice = "list every input of the package, and no other";
    Err(misconfigured(Code::InvalidArg, text, "input", advice))
}

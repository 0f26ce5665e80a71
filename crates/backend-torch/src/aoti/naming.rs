//! Which input and output of a configuration is which of a package.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

/// One side of a package: as many tensors as the code has, and their names where the call spec tells them.
pub(super) struct Side<'a> {
    /// `input` or `output`.
    pub what: &'static str,
    /// `INPUT__` or `OUTPUT__`, before the position.
    pub prefix: &'static str,
    pub count: usize,
    pub names: &'a [String],
}

impl Side<'_> {
    /// Position of each of `specs`, no position twice.
    pub fn positions(&self, config: &ModelConfig, specs: &[TensorSpec]) -> Result<Vec<usize>> {
        let what = self.what;
        if specs.is_empty() {
            return Err(Error::internal(format!(
                "model configuration must contain at least one {what}, none were specified: model '{}' has {}, \
                 of types and dimensions that its package does not tell",
                config.name(),
                self.known()
            )));
        }
        let mut positions = Vec::with_capacity(specs.len());
        for spec in specs {
            let position = self.position(&spec.name).ok_or_else(|| {
                Error::invalid_arg(format!(
                    "unable to load model '{}', {what} '{}' is not in the package, which has {}",
                    config.name(),
                    spec.name,
                    self.known()
                ))
            })?;
            if positions.contains(&position) {
                return Err(Error::invalid_arg(format!(
                    "unable to load model '{}', {what} '{}' is another name of one that is there already",
                    config.name(),
                    spec.name
                )));
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

    /// E.g. `ARGS[0] or INPUT__0, KWARGS[mask] or INPUT__1`.
    fn known(&self) -> String {
        let name = |index| match self.names.get(index) {
            Some(name) => format!("{name} or {}{index}", self.prefix),
            None => format!("{}{index}", self.prefix),
        };
        (0..self.count).map(name).collect::<Vec<_>>().join(", ")
    }
}

/// Compiled code takes all its inputs.
pub(super) fn check_complete(config: &ModelConfig, side: &Side<'_>) -> Result<()> {
    if let Some(spec) = config.inputs().iter().find(|spec| spec.is_optional) {
        return Err(Error::invalid_arg(format!(
            "unable to load model '{}', input '{}' is optional, but a package takes all its inputs",
            config.name(),
            spec.name
        )));
    }
    if config.inputs().len() == side.count {
        return Ok(());
    }
    Err(Error::invalid_arg(format!(
        "unable to load model '{}', configuration expects {} inputs, model provides {}: {}",
        config.name(),
        config.inputs().len(),
        side.count,
        side.known()
    )))
}

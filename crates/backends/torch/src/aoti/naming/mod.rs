//! Which input and output of a configuration is which of a package.

mod error;

use galatea_config::{ModelConfig, TensorSpec};

use self::error::PackageNamingError;

/// One side of a package: as many tensors as the code has, and their names where the call spec has them.
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
    pub fn positions(
        &self,
        config: &ModelConfig,
        specs: &[TensorSpec],
    ) -> Result<Vec<usize>, PackageNamingError> {
        let what = self.what;
        let model = || config.name().to_string();
        if specs.is_empty() {
            return Err(PackageNamingError::NoTensors {
                what,
                model: model(),
                known: self.known(),
            });
        }
        let mut positions = Vec::with_capacity(specs.len());
        for spec in specs {
            let name = || spec.name.to_string();
            let unknown = || PackageNamingError::Unknown {
                what,
                model: model(),
                name: name(),
                known: self.known(),
            };
            let position = self.position(&spec.name).ok_or_else(unknown)?;
            if positions.contains(&position) {
                return Err(PackageNamingError::Twice { what, model: model(), name: name() });
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
pub(super) fn check_complete(
    config: &ModelConfig,
    side: &Side<'_>,
) -> Result<(), PackageNamingError> {
    let model = config.name().to_string();
    if let Some(spec) = config.execution_inputs().iter().find(|spec| spec.is_optional) {
        return Err(PackageNamingError::Optional { model, name: spec.name.to_string() });
    }
    if config.execution_inputs().len() == side.count {
        return Ok(());
    }
    Err(PackageNamingError::InputCount {
        model,
        configured: config.execution_inputs().len(),
        provided: side.count,
        known: side.known(),
    })
}

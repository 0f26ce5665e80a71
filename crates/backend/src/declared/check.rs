//! The checks of a whole configuration against a declaration.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Result, Shape};

use super::{
    Declaration, DeclaredKind, DeclaredTensor, Disagreement, OtherShape, Specified, Subject,
};

impl<T: DeclaredTensor> Declaration<'_, T> {
    /// Whether a configuration agrees with the model.
    ///
    /// # Errors
    /// Of the first tensor that does not.
    pub fn check(&self, config: &ModelConfig) -> Result<()> {
        self.check_count(config)?;
        for spec in config.model_inputs() {
            check_optional(config, spec)?;
            self.side(config, "input").check(spec, self.expect_input(&spec.name)?)?;
        }
        for spec in config.model_outputs() {
            self.side(config, "output").check(spec, self.expect_output(&spec.name)?)?;
        }
        Ok(())
    }

    fn side<'c>(&self, config: &'c ModelConfig, what: &'static str) -> Side<'c> {
        Side { config, what, how_to_batch: self.how_to_batch }
    }

    /// Inputs that the model has values of its own for do not count.
    fn check_count(&self, config: &ModelConfig) -> Result<()> {
        let counts = |spec: &&TensorSpec| self.optional_inputs.is_none() || !spec.is_optional;
        let expected = config.model_inputs().iter().filter(counts).count();
        let checked = check_input_count(config, expected, self.inputs.len());
        if checked.is_err() {
            // An unknown name explains itself better than a count.
            for spec in config.model_inputs() {
                self.expect_input(&spec.name)?;
            }
        }
        checked
    }
}

/// Whether as many inputs are configured, `expected`, as the model has.
///
/// # Errors
/// There are more or fewer.
pub fn check_input_count(config: &ModelConfig, expected: usize, provided: usize) -> Result<()> {
    let model = || config.name().to_string();
    match expected == provided {
        true => Ok(()),
        false => Err(Disagreement::InputCount { model: model(), expected, provided }.into()),
    }
}

/// Whether a tensor is of the configured type.
///
/// # Errors
/// It is of another one, or no tensor that a request can carry.
pub fn check_type(
    config: &ModelConfig,
    what: &'static str,
    spec: &TensorSpec,
    kind: DeclaredKind,
) -> Result<()> {
    let (of, expected) = (Subject::new(config.name(), what, &spec.name), spec.data_type);
    match kind {
        DeclaredKind::Tensor(provided) if provided == expected => Ok(()),
        DeclaredKind::Tensor(provided) => {
            Err(Disagreement::OtherType { of, expected, provided }.into())
        }
        DeclaredKind::Other(kind) => Err(Disagreement::UnsupportedKind { of, kind }.into()),
    }
}

fn check_optional(config: &ModelConfig, spec: &TensorSpec) -> Result<()> {
    if !spec.is_optional || !config.has_batching() {
        return Ok(());
    }
    let (model, input) = (config.name().to_string(), spec.name.to_string());
    Err(Disagreement::OptionalInput { model, input }.into())
}

/// One side of a model: inputs may leave open what the model fixes, outputs must be just as the model declares them.
struct Side<'a> {
    config: &'a ModelConfig,
    what: &'static str,
    how_to_batch: &'static str,
}

impl Side<'_> {
    fn check(&self, spec: &TensorSpec, declared: &impl DeclaredTensor) -> Result<()> {
        check_type(self.config, self.what, spec, declared.kind())?;
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        match declared.dims() {
            // What the model does not say is as the configuration has it.
            None => Ok(()),
            Some(model_dims) if model_dims.is_empty() => self.check_scalar(spec, dims),
            Some(model_dims) => self.check_dims(spec, dims, model_dims),
        }
    }

    fn subject(&self, spec: &TensorSpec) -> Subject {
        Subject::new(self.config.name(), self.what, &spec.name)
    }

    /// A model's scalar is configured as `dims: [1]`.
    fn check_scalar(&self, spec: &TensorSpec, dims: &Shape) -> Result<()> {
        match dims.iter().all(|&d| d == 1) {
            true => Ok(()),
            false => {
                Err(Disagreement::Scalar { of: self.subject(spec), dims: dims.clone() }.into())
            }
        }
    }

    fn check_dims(&self, spec: &TensorSpec, dims: &Shape, model_dims: &Shape) -> Result<()> {
        let has_batching = self.config.has_batching();
        if has_batching && model_dims.first() != Some(&-1) {
            return Err(Disagreement::NoBatchDimension {
                of: self.subject(spec),
                model_dims: model_dims.clone(),
                how_to_batch: self.how_to_batch,
            }
            .into());
        }
        let full = if has_batching { dims.with_leading(-1) } else { dims.clone() };
        let may_be_open = self.what == "input";
        let mut pairs = full.iter().zip(model_dims.iter());
        let fits = full.len() == model_dims.len()
            && pairs.all(|(c, m)| c == m || (may_be_open && *m == -1));
        match fits {
            true => Ok(()),
            false => Err(Disagreement::OtherShape(Box::new(OtherShape {
                of: self.subject(spec),
                model_dims: model_dims.clone(),
                specified: Specified { shape: full, has_batching },
            }))
            .into()),
        }
    }
}
